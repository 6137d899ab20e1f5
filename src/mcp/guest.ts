import { internalErrorCode, messageOf, ProtocolError, RuntimeError } from "../errors.ts";
import type { Logger } from "../log.ts";
import { metaKeys, toEnvelope } from "../wire/envelope.ts";
import { type Id, InFlight } from "../wire/in-flight.ts";
import { excerptOf, fieldsOf, isObject, type Json, listOf, textOf } from "../wire/json.ts";
import type { Message } from "../wire/message.ts";
import { legacyRevision } from "../wire/revisions.ts";
import type { ServerIdentity } from "./parts.ts";
import type { ClientConnection, ClientRequest, Result } from "./request.ts";
import { toRpcError } from "./router.ts";

/**
 * What an author has registered by hand, on the SDK's server. That server is a guest: it sits at the other end of a
 * pair in memory and is asked as any other would be, for what is not ours. It is loaded where there is a hook, and only
 * there.
 */

type Era = "legacy" | "modern";

/** The guest's end of the pair, as the SDK wants it. */
interface Pair {
  onmessage?: (message: unknown, extra?: { readonly closeSSEStream: () => void }) => void;
  onclose?: () => void;
  start(): Promise<void>;
  send(message: unknown, options?: { readonly relatedRequestId?: Id }): Promise<void>;
  close(): Promise<void>;
}

interface SdkServer {
  connect(pair: Pair): Promise<void>;
}

/** What is used of the SDK. */
export interface Sdk {
  readonly McpServer: new (
    facts: { name: string; version: string },
    options: { capabilities: object; instructions?: string },
  ) => SdkServer;
  readonly serveStdio: (
    factory: (facts: { era: Era }) => unknown,
    options: { transport: Pair; onerror: (error: Error) => void; maxSubscriptions: number },
  ) => unknown;
}

/** What an author registers things with. */
export type GuestHook = (server: object, facts: { readonly era: Era }) => void | Promise<void>;

export interface GuestOptions {
  readonly facts: ServerIdentity;
  readonly hook: GuestHook;
  readonly loadSdk: () => Promise<Sdk>;
  readonly log: Logger;
}

/** A question to a client ends when the guest says so: it has limits of its own. */
const askLimitMs = 24 * 60 * 60 * 1000;
/** So many pages of a list are read to know what is in it. */
const maxPages = 100;
const ownClient = {
  protocolVersion: legacyRevision,
  capabilities: {},
  clientInfo: { name: "meanwhile", version: "0" },
};

/** Makes guests: one for each session that has begun with a handshake, and one of each era for everybody else. */
export class Guests {
  readonly #options: GuestOptions;
  readonly #shared = new Map<Era, Promise<Guest>>();
  readonly #open = new Map<Era, Guest>();

  constructor(options: GuestOptions) {
    this.#options = options;
  }

  shared(era: Era): Promise<Guest> {
    let guest = this.#shared.get(era);
    if (guest === undefined) {
      // An author may close a server; the next client gets another.
      const onClose = () => {
        this.#shared.delete(era);
        this.#open.delete(era);
      };
      guest = Guest.open(this.#options, { era, onClose });
      this.#shared.set(era, guest);
      // A hook that fails may do better the next time.
      guest.then(
        (open) => void this.#open.set(era, open),
        () => this.#shared.delete(era),
      );
    }
    return guest;
  }

  /** Once it is there. */
  openShared(era: Era): Guest | undefined {
    return this.#open.get(era);
  }

  /** For a client that has shaken hands as `params` say. */
  open(connection: ClientConnection, params: Json): Promise<Guest> {
    return Guest.open(this.#options, { era: "legacy", connection, params });
  }

  /** The schema of a tool's arguments, as the guest that everybody shares since 2026-07-28 has it, once it is there. */
  schemaOf(tool: string): Json | undefined {
    return this.openShared("modern")?.tools.get(tool);
  }

  close(): void {
    for (const guest of this.#shared.values()) void guest.then((open) => open.close()).catch(() => undefined);
  }
}

interface Opening {
  readonly era: Era;
  /** Whose guest it is alone. */
  readonly connection?: ClientConnection;
  readonly params?: Json;
  readonly onClose?: () => void;
}

export class Guest {
  readonly #opening: Opening;
  readonly #log: Logger;
  readonly #pair: Pair;
  readonly #inFlight = new InFlight<Message>();
  /** Whose requests they are that it works on. */
  readonly #requests = new Map<Id, ClientRequest>();
  /** Its questions that clients have not answered. */
  readonly #asked = new Map<Id, AbortController>();
  readonly #listens = new Map<Id, (method: string, params: Json) => void>();
  #isClosed = false;
  #capabilities: Json = {};
  /** Schemas of its tools, by name. */
  tools: ReadonlyMap<string, Json> = new Map();
  prompts: ReadonlySet<string> = new Set();

  static async open({ facts, hook, loadSdk, log }: GuestOptions, opening: Opening): Promise<Guest> {
    const { McpServer, serveStdio } = await loadSdk().catch((error: unknown) => {
      log.error(messageOf(error));
      throw error;
    });
    const guest = new Guest(opening, log);
    const failed = Promise.withResolvers<never>();
    failed.promise.catch(() => undefined);
    const create = async ({ era }: { era: Era }) => {
      const { name, version, instructions } = facts;
      const server = new McpServer(
        { name, version },
        { capabilities: { logging: {} }, ...(instructions !== undefined && { instructions }) },
      );
      try {
        await hook(server, { era });
      } catch (error) {
        log.error("the `mcp` hook of the config file failed, so no client can be served", { error });
        const failure = new RuntimeError("CONFIG_INVALID", "The `mcp` hook of the config file failed.", {
          cause: error,
          forClients: "The `mcp` hook of this server failed; its log says why.",
        });
        failed.reject(failure);
        throw failure;
      }
      return server;
    };
    try {
      if (opening.era === "legacy") await (await create(opening)).connect(guest.#pair);
      // How many may listen, our own doors say.
      else
        serveStdio(create, {
          transport: guest.#pair,
          onerror: (error) => log.debug(`mcp: ${error.message}`),
          maxSubscriptions: Number.POSITIVE_INFINITY,
        });
      await Promise.race([guest.#begin(), failed.promise]);
    } catch (error) {
      guest.close();
      throw error;
    }
    return guest;
  }

  private constructor(opening: Opening, log: Logger) {
    this.#opening = opening;
    this.#log = log;
    this.#pair = {
      start: async () => undefined,
      send: async (message, options) => this.#receive(message as Message, options?.relatedRequestId),
      close: async () => this.close(),
    };
  }

  /** False where it belongs to one session. */
  get isShared(): boolean {
    return this.#opening.connection === undefined;
  }

  /**
   * Asks it in the name of a client: what it tells meanwhile goes to that client, and who takes the request back takes
   * it back here.
   */
  async request(method: string, params: Json, request?: ClientRequest): Promise<Result> {
    // A hook may take its time, and the client may have gone meanwhile.
    request?.signal.throwIfAborted();
    if (this.#isClosed) throw new ProtocolError(internalErrorCode, "The server is closing.");
    const { id, answer, fail } = this.#inFlight.open();
    if (request !== undefined) this.#requests.set(id, request);
    const onAbort = () => {
      this.notify("notifications/cancelled", { requestId: id });
      fail(request?.signal.reason);
    };
    request?.signal.addEventListener("abort", onAbort, { once: true });
    this.#deliver({ id, method, params }, request?.hangUp);
    try {
      const { result, error } = await answer;
      if (error !== undefined) throw withoutEcho(toError(error), textOf(params.name) ?? textOf(params.uri));
      return fieldsOf(result);
    } finally {
      this.#requests.delete(id);
      request?.signal.removeEventListener("abort", onAbort);
    }
  }

  notify(method: string, params: Json): void {
    this.#deliver({ method, params });
  }

  /** Has it tell what it lets a client of 2026-07-28 listen to; what of that it honours. */
  async listen(wanted: Json, tell: (method: string, params: Json) => void, over: AbortSignal): Promise<Json> {
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
    this.#deliver({ id, method: "subscriptions/listen", params: { notifications, _meta: ownEnvelope } });
    return await acknowledged.promise;
  }

  /** What it declares beside what is ours. */
  mergeCapabilities(ours: Json): Json {
    const merged = { ...this.#capabilities, ...ours };
    for (const [name, own] of Object.entries(ours))
      merged[name] = { ...fieldsOf(this.#capabilities[name]), ...fieldsOf(own) };
    return merged;
  }

  /** Whether it has what a method asks for. */
  capabilityOf(method: string): boolean {
    const name = method === "completion/complete" ? "completions" : (method.split("/", 1)[0] ?? "");
    return this.#capabilities[name] !== undefined;
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#inFlight.failAll(new ProtocolError(internalErrorCode, "The server is closing."));
    for (const asked of this.#asked.values()) asked.abort();
    this.#opening.onClose?.();
    this.#pair.onclose?.();
  }

  async #begin(): Promise<void> {
    const { era, params } = this.#opening;
    const hello =
      era === "modern" ? await this.#own("server/discover") : await this.#own("initialize", params ?? ownClient);
    this.#capabilities = fieldsOf(hello.capabilities);
    // A session's own client says that itself.
    if (era === "legacy" && this.isShared) this.notify("notifications/initialized", {});
    await Promise.all([this.#readTools(), this.#readPrompts()]);
    if (era === "modern")
      await this.listen(
        { toolsListChanged: true, promptsListChanged: true },
        (method) => this.#onChange(method),
        never,
      );
  }

  #own(method: string, params: Json = {}): Promise<Result> {
    return this.request(method, this.#opening.era === "modern" ? { ...params, _meta: ownEnvelope } : params);
  }

  async #readTools(): Promise<void> {
    const tools = await this.#readList("tools");
    this.tools = new Map(tools.map((tool) => [textOf(tool.name) ?? "", fieldsOf(tool.inputSchema)]));
  }

  async #readPrompts(): Promise<void> {
    const prompts = await this.#readList("prompts");
    this.prompts = new Set(prompts.map(({ name }) => textOf(name) ?? ""));
  }

  async #readList(name: "tools" | "prompts"): Promise<readonly Json[]> {
    const found: Json[] = [];
    if (this.#capabilities[name] === undefined) return found;
    let cursor: string | undefined;
    for (let page = 0; page < maxPages; page++) {
      const result = await this.#own(`${name}/list`, cursor === undefined ? {} : { cursor });
      found.push(...listOf(result[name]).filter(isObject));
      cursor = textOf(result.nextCursor);
      if (cursor === undefined) break;
    }
    return found;
  }

  /** In the order in which it came, and not within the call that sent it. */
  #deliver(message: Message, closeSSEStream?: () => void): void {
    queueMicrotask(() => this.#pair.onmessage?.({ jsonrpc: "2.0", ...message }, closeSSEStream && { closeSSEStream }));
  }

  #receive(message: Message, related: Id | undefined): void {
    const { id, method, params = {} } = message;
    if (method === undefined) this.#inFlight.settle(id, message);
    else if (id !== undefined && id !== null) void this.#ask(id, method, params, related);
    else this.#heed(method, params, related);
  }

  /** It asks a client something: the one whose request it works on, or whose guest it is. */
  async #ask(id: Id, method: string, params: Json, related: Id | undefined): Promise<void> {
    const asked = new AbortController();
    this.#asked.set(id, asked);
    const options = { signal: asked.signal, timeoutMs: askLimitMs };
    try {
      const whom = this.#requests.get(related ?? "") ?? this.#way;
      if (whom === undefined) throw new ProtocolError(-32601, "Nobody is there to be asked.");
      this.#deliver({ id, result: await whom.ask(method, params, options) });
    } catch (error) {
      this.#deliver({ id, error: toRpcError(error) });
    } finally {
      this.#asked.delete(id);
    }
  }

  /**
   * To the client whose guest it is: on a stream for messages of our own or, where none is open, on that of any of its
   * requests.
   */
  get #way(): ClientConnection | ClientRequest | undefined {
    const { connection } = this.#opening;
    if (connection === undefined || connection.canPush) return connection;
    return [...this.#requests.values()].at(-1) ?? connection;
  }

  #heed(method: string, params: Json, related: Id | undefined): void {
    const listen = this.#listens.get(fieldsOf(params._meta)[metaKeys.subscription] as Id);
    if (method === "notifications/cancelled") this.#asked.get(params.requestId as Id)?.abort(params.reason);
    else if (listen !== undefined) listen(method, params);
    else {
      this.#onChange(method);
      const whom = this.#requests.get(related ?? "") ?? this.#opening.connection;
      whom?.notify(method, params);
    }
  }

  #onChange(method: string): void {
    const reading =
      method === "notifications/tools/list_changed"
        ? this.#readTools()
        : method === "notifications/prompts/list_changed"
          ? this.#readPrompts()
          : undefined;
    reading?.catch((error: unknown) => this.#log.debug(`mcp: ${String(error)}`));
  }
}

const never = new AbortController().signal;
const ownEnvelope = toEnvelope(ownClient.clientInfo, {});

function toError({ code, message, data }: NonNullable<Message["error"]>): ProtocolError {
  return new ProtocolError(code, message, data);
}

/** Megabytes that a client sent as a name are not sent back to it. */
function withoutEcho(error: ProtocolError, name = ""): ProtocolError {
  const excerpt = excerptOf(name);
  if (excerpt === name) return error;
  const data = isObject(error.data) && error.data.uri === name ? { ...error.data, uri: excerpt } : error.data;
  return new ProtocolError(error.code, error.message.replaceAll(name, excerpt), data);
}
