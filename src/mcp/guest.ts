import { TakenBack, withoutReservedMeta } from "../command/foreign.ts";
import { CommandError, ProtocolError, RpcCode } from "../errors.ts";
import { createId } from "../ids.ts";
import type { Logger } from "../log.ts";
import { type Id, InFlight } from "../wire/in-flight.ts";
import { fieldsOf, type Json, listOf, textOf } from "../wire/json.ts";
import type { Message } from "../wire/message.ts";
import { metaKeys, toEnvelope, withoutEnvelope } from "../wire/request-envelope.ts";
import { legacyRevision } from "../wire/revisions.ts";
import { readAllPages, toAnswered, toError } from "./guest-answer.ts";
import { GuestAudience, type Hearing } from "./guest-audience.ts";
import {
  askOutside,
  extraOf,
  type GuestClient,
  nobody,
  noSession,
  refuseForeignRoots,
  unclear,
} from "./guest-client.ts";
import type { GuestEra, GuestOptions } from "./guest-host.ts";
import { type About, LinkedPair } from "./guest-pair.ts";
import { GuestSessions, type ReachedClient, type SharingSession } from "./guest-sessions.ts";
import { type GuestView, joinCapabilities } from "./guest-view.ts";
import type { ClientConnection, Result } from "./request.ts";
import { toRpcError } from "./router.ts";

/** A question to a client ends when the guest says so: it has limits of its own. */
const askLimitMs = 24 * 60 * 60 * 1000;
const ownInfo = { name: "meanwhile", version: "0" };
/** A guest that all share is told that its clients can do everything; who cannot says so when it is asked. */
const anyClient = {
  protocolVersion: legacyRevision,
  capabilities: {
    elicitation: { form: {}, url: {} },
    sampling: { tools: {}, context: {} },
    roots: { listChanged: true },
  },
  clientInfo: ownInfo,
};
const ownEnvelope = toEnvelope(ownInfo, {});
const never = new AbortController().signal;

interface Opening {
  readonly era: GuestEra;
  /** Whose guest it is alone. */
  readonly connection?: ClientConnection;
  readonly params?: Json;
  readonly onClose?: () => void;
  /** For one call, after which it is closed. */
  readonly isForOne?: boolean;
  /** For one caller who has no session. */
  readonly isOfOneCaller?: boolean;
  /** Made only to list what such servers have: no client is ever served by it. */
  readonly isSample?: boolean;
}

/** One server of a host's: asked as any server would be, at the other end of a pair in memory. */
export class Guest implements GuestView {
  readonly #opening: Opening;
  readonly #log: Logger;
  readonly #pair: LinkedPair;
  readonly #inFlight = new InFlight<Message>();
  /** Whose requests they are that it works on. */
  readonly #clients = new Map<Id, GuestClient>();
  /** Its questions that clients have not answered. */
  readonly #asked = new Map<Id, AbortController>();
  readonly #listens = new Map<Id, (method: string, params: Json) => void>();
  readonly #audience = new GuestAudience((method, params) => this.request(method, params));
  readonly #sessions = new GuestSessions(() => this.notify("notifications/roots/list_changed", {}));
  #onTools: (() => void) | undefined;
  #isLeaving = false;
  #isClosed = false;
  /** See `GuestView`. */
  readonly isAlone: boolean;
  /** How it has introduced itself. */
  hello: Json = {};
  /** Its tools as it lists them, by name. */
  tools: ReadonlyMap<string, Json> = new Map();
  prompts: ReadonlySet<string> = new Set();

  static async open(options: GuestOptions, opening: Opening): Promise<Guest> {
    const guest = new Guest(opening, options);
    try {
      const { failed } = await options.host.connect(opening.era, guest.#pair.theirs);
      await Promise.race([guest.#begin(), failed]);
    } catch (error) {
      guest.close();
      throw error;
    }
    return guest;
  }

  private constructor(opening: Opening, { host, log, isAlone = false }: GuestOptions) {
    this.#opening = opening;
    this.#log = log;
    this.isAlone = isAlone;
    this.#pair = new LinkedPair({
      sessionId: host.isOne ? undefined : createId(),
      receive: (message, about) => this.#receive(message, about),
      onClose: () => this.close(),
      onError: (error) => log.debug(`mcp: ${String(error)}`),
    });
  }

  get era(): GuestEra {
    return this.#opening.era;
  }

  /** False where it belongs to one session. */
  get isShared(): boolean {
    return this.#opening.connection === undefined;
  }

  /** True where it works for one caller alone, in whatever session. */
  get isOfOneCaller(): boolean {
    return this.#opening.isOfOneCaller === true;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /**
   * Asks it in the name of a client: what it tells meanwhile goes to that client, and who takes the request back takes
   * it back here. What it is asked may depend on the request's number, by which it is then followed.
   */
  request(method: string, asked: Json | ((id: Id) => Json), client?: GuestClient): Promise<Result> {
    // A server may take its time to be made, and the client may have gone meanwhile.
    if (client?.signal.aborted === true) return Promise.reject(client.signal.reason);
    if (this.#isClosed) return Promise.reject(new ProtocolError(RpcCode.Internal, "The server is closing."));
    const { id, answer, fail } = this.#inFlight.open();
    const params = typeof asked === "function" ? asked(id) : asked;
    if (client !== undefined) {
      this.#clients.set(id, client);
      this.#sessions.noteRequest(() => new ProtocolError(RpcCode.Method, nobody));
    }
    const onAbort = () => {
      this.notify("notifications/cancelled", { requestId: id });
      fail(client?.signal.reason);
    };
    client?.signal.addEventListener("abort", onAbort, { once: true });
    this.#pair.deliver({ id, method, params: this.#toOwn(params) }, extraOf(client), client?.who);
    const finish = () => {
      this.#clients.delete(id);
      client?.signal.removeEventListener("abort", onAbort);
      if (this.#isLeaving) this.leave();
    };
    return answer.then(
      (answered) => {
        finish();
        return toAnswered(answered, method, params);
      },
      (error: unknown) => {
        finish();
        throw error;
      },
    );
  }

  /** What it still does in the name of a request that it has answered is for this client; until called off. */
  worksOn(id: Id, client: GuestClient): () => void {
    this.#clients.set(id, client);
    return () => void this.#clients.delete(id);
  }

  notify(method: string, params: Json): void {
    this.#pair.deliver({ method, params });
  }

  /** What a client of 2026-07-28 says of itself means nothing to a server that knows no such clients. */
  #toOwn(params: Json): Json {
    return this.era === "legacy" ? withoutEnvelope(params) : params;
  }

  /** Has it tell what it lets a client of 2026-07-28 listen to; what of that it honours. */
  async listen(wanted: Json, tell: (method: string, params: Json) => void, over: AbortSignal): Promise<Json> {
    if (this.era === "legacy") return await this.#hear(wanted, tell, over);
    const { taskIds: _ours, ...notifications } = wanted;
    const { id, answer, forget } = this.#inFlight.open();
    const acknowledged = Promise.withResolvers<Json>();
    answer.then(
      ({ error }) => (error === undefined ? acknowledged.resolve({}) : acknowledged.reject(toError(error))),
      acknowledged.reject,
    );
    this.#listens.set(id, (method, params) => {
      if (method === "notifications/subscriptions/acknowledged") acknowledged.resolve(fieldsOf(params.notifications));
      else tell(method, params);
    });
    over.addEventListener("abort", () => {
      forget();
      if (this.#listens.delete(id)) this.notify("notifications/cancelled", { requestId: id });
    });
    this.#pair.deliver({ id, method: "subscriptions/listen", params: { notifications, _meta: ownEnvelope } });
    return await acknowledged.promise;
  }

  /** The same of a server that tells without being listened to. */
  async #hear(wanted: Json, tell: (method: string, params: Json) => void, over: AbortSignal): Promise<Json> {
    const names = ["prompts", "resources"] as const;
    const lists = names.filter(
      (name) => wanted[`${name}ListChanged`] === true && fieldsOf(this.capabilities[name]).listChanged === true,
    );
    const canSubscribe = fieldsOf(this.capabilities.resources).subscribe === true;
    const uris = canSubscribe ? listOf(wanted.resourceSubscriptions).filter((uri) => typeof uri === "string") : [];
    const hearing = this.#audience.add(lists, tell);
    over.addEventListener("abort", () => hearing.stop());
    const honoured = await hearing.subscribeToEach(uris);
    return {
      ...Object.fromEntries(lists.map((name) => [`${name}ListChanged`, true])),
      ...(honoured.length > 0 && { resourceSubscriptions: honoured }),
    };
  }

  /** Somebody who shares it hears of its lists, and of the resources that they subscribe to. */
  hearFor(tell: Hearing["tell"]): Hearing {
    return this.#audience.add(["prompts", "resources"], tell);
  }

  /**
   * A session that shares it has ended its handshake. While that session is the only client, the server can ask it at any
   * time. The returned function ends its share.
   */
  shareWith(session: SharingSession): () => void {
    return this.#sessions.add(session);
  }

  /** Called before each call of a client of 2026-07-28 that has declared roots; see `GuestSessions`. */
  giveRoots(client: ReachedClient): Promise<void> | undefined {
    return this.isShared ? this.#sessions.giveRoots(client) : undefined;
  }

  /** The roots of a session that shares it have changed. Of several sessions none is heard: it is not clear whose count. */
  rootsChanged(session: SharingSession): void {
    if (this.#sessions.isOnly(session)) this.notify("notifications/roots/list_changed", {});
  }

  get capabilities(): Json {
    return fieldsOf(this.hello.capabilities);
  }

  /** What it declares beside what is ours. */
  mergeCapabilities(ours: Json): Json {
    return joinCapabilities(this.capabilities, ours, this.isAlone);
  }

  /** Whether it has what a method asks for. */
  capabilityOf(method: string): boolean {
    const name = method === "completion/complete" ? "completions" : (method.split("/", 1)[0] ?? "");
    return this.capabilities[name] !== undefined;
  }

  /** Calls back when its tools have changed, and are known. */
  onTools(listener: () => void): void {
    this.#onTools = listener;
  }

  /** A call is over. */
  used(): void {
    if (this.#opening.isForOne === true) this.close();
  }

  /** Nobody asks it anything more: it is closed as soon as what it works on is done. */
  leave(): void {
    this.#isLeaving = true;
    if (this.#clients.size === 0) this.close();
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#inFlight.failAll(new ProtocolError(RpcCode.Internal, "The server is closing."));
    for (const asked of this.#asked.values()) asked.abort();
    this.#opening.onClose?.();
    this.#pair.close();
  }

  async #begin(): Promise<void> {
    const { era, params } = this.#opening;
    this.hello = await (era === "modern" ? this.#own("server/discover") : this.#own("initialize", params ?? anyClient));
    // A session's own client says that itself.
    if (era === "legacy" && this.isShared) this.notify("notifications/initialized", {});
    await Promise.all([this.#readTools(), this.#readPrompts()]);
    if (era === "modern")
      await this.listen(
        { toolsListChanged: true, promptsListChanged: true },
        (method, news) => void this.#heedChange(method, news),
        never,
      );
  }

  #own(method: string, params: Json = {}): Promise<Result> {
    return this.request(method, this.era === "modern" ? { ...params, _meta: ownEnvelope } : params);
  }

  async #readTools(): Promise<void> {
    const tools = await this.#readList("tools");
    this.tools = new Map(tools.map((tool) => [textOf(tool.name) ?? "", tool]));
  }

  async #readPrompts(): Promise<void> {
    const prompts = await this.#readList("prompts");
    this.prompts = new Set(prompts.map(({ name }) => textOf(name) ?? ""));
  }

  async #readList(name: "tools" | "prompts"): Promise<readonly Json[]> {
    if (this.capabilities[name] === undefined) return [];
    return await readAllPages(name, (cursor) => this.#own(`${name}/list`, cursor === undefined ? {} : { cursor }));
  }

  #receive(message: Message, about: About): void {
    if (typeof message !== "object" || message === null) return;
    const { id, method, params = {} } = message;
    if (method === undefined) this.#inFlight.settle(id, message);
    else if (id !== undefined && id !== null) void this.#ask(id, method, params, about);
    else this.#heed(method, params, about);
  }

  /** The server asks a client: the one whose request it works on, the one it belongs to, or the only one there is. */
  async #ask(id: Id, method: string, params: Json, about: About): Promise<void> {
    const asked = new AbortController();
    this.#asked.set(id, asked);
    const options = { signal: asked.signal, timeoutMs: askLimitMs };
    try {
      if (method === "ping") return void this.#pair.deliver({ id, result: {} });
      const own = this.#clientOf(about) ?? this.#way;
      const whom = own ?? this.#onlyClient(about) ?? (await this.#firstClient(method, about, asked.signal));
      if (own === undefined && !this.isOfOneCaller) refuseForeignRoots(method, whom);
      this.#pair.deliver({ id, result: (await whom.ask(method, withoutReservedMeta(params), options)) as Json });
    } catch (error) {
      // What a person or a client says no to is told to whoever asked.
      const isNo = error instanceof CommandError;
      this.#pair.deliver({ id, error: isNo ? { code: RpcCode.Internal, message: error.message } : toRpcError(error) });
    } finally {
      this.#asked.delete(id);
    }
  }

  /** The only client of a shared server, where what it says is not of another client's request. */
  #onlyClient({ who }: About): ReachedClient | undefined {
    return this.isShared ? this.#sessions.only(who, [...this.#clients.values()]) : undefined;
  }

  /**
   * What a server asks before it has any client, such as the roots at its start, waits for the first one. Throws for any
   * other question that can be for none of the clients.
   */
  async #firstClient(method: string, { who }: About, withdrawn: AbortSignal): Promise<ReachedClient> {
    if (this.#opening.isSample === true) throw new ProtocolError(RpcCode.Method, noSession);
    const isOfClient = !this.isShared || who !== undefined || this.#clients.size > 0;
    const next = isOfClient ? undefined : this.#sessions.next(method, withdrawn);
    if (next === undefined) throw new ProtocolError(RpcCode.Method, nobody);
    return await next;
  }

  /**
   * To the client whose guest it is: on a stream for messages of our own or, where none is open, on that of any of its
   * requests.
   */
  get #way(): Pick<ReachedClient, "caller" | "ask"> | undefined {
    const { connection } = this.#opening;
    if (connection === undefined) return undefined;
    const working = connection.canPush ? undefined : [...this.#clients.values()].at(-1);
    return working ?? { caller: connection.caller, ask: (...given) => askOutside(connection, ...given) };
  }

  /**
   * The client whose request it works on. Where many share it, and it works for another caller too, what it has not
   * said itself is no reason to believe it: one's code may run in the middle of another's call.
   */
  #clientOf({ id, isSaid }: About): GuestClient | undefined {
    const client = id === undefined ? undefined : this.#clients.get(id);
    if (client === undefined || isSaid || !this.isShared) return client;
    for (const { who } of this.#clients.values()) if (who !== client.who) return void this.#log.warn(unclear);
    return client;
  }

  #heed(method: string, params: Json, about: About): void {
    const listen = this.#listens.get(fieldsOf(params._meta)[metaKeys.subscription] as Id);
    if (method === "notifications/cancelled")
      return void this.#asked.get(params.requestId as Id)?.abort(new TakenBack());
    if (listen !== undefined) return void listen(method, params);
    if (method.endsWith("/list_changed") || method === "notifications/resources/updated")
      return void this.#heedChange(method, params);
    // Its tasks are followed, and nobody else's business.
    if (method.startsWith("notifications/tasks")) return;
    // Said outside of all that a request has led to, it may still bear the request's number as its token.
    const client = this.#clients.get(params.progressToken as Id) ?? this.#clientOf(about);
    // By its token, which is ours, nobody else could know what it belongs to.
    if (client === undefined && method === "notifications/progress") return;
    (client ?? this.#opening.connection ?? this.#onlyClient(about))?.notify(method, withoutReservedMeta(params));
  }

  /** What has changed is known here before anybody is told of it. */
  async #heedChange(method: string, params: Json): Promise<void> {
    try {
      if (method === "notifications/tools/list_changed") await this.#readTools();
      else if (method === "notifications/prompts/list_changed") await this.#readPrompts();
    } catch (error) {
      return void this.#log.debug(`mcp: ${String(error)}`);
    }
    if (method === "notifications/tools/list_changed") this.#onTools?.();
    this.#opening.connection?.notify(method, params);
    this.#audience.tell(method, params);
  }
}
