import { maxResultBytes } from "../command/result-json.ts";
import { ProtocolError, RpcCode } from "../errors.ts";
import type { Logger } from "../log.ts";
import { weigh } from "../task/weigh.ts";
import { type Id, InFlight } from "../wire/in-flight.ts";
import { excerptOf, fieldsOf, isObject, type Json, listOf, textOf } from "../wire/json.ts";
import type { Message } from "../wire/message.ts";
import { metaKeys, toEnvelope } from "../wire/request-envelope.ts";
import { legacyRevision } from "../wire/revisions.ts";
import { connectGuest, type GuestEra, type GuestOptions, type GuestPair } from "./guest-server.ts";
import type { ClientConnection, ClientRequest, Result } from "./request.ts";
import { toRpcError } from "./router.ts";

/** A question to a client ends when the guest says so: it has limits of its own. */
const askLimitMs = 24 * 60 * 60 * 1000;
/** So many pages of a list are read to know what is in it. */
const maxPages = 100;
const ownClient = {
  protocolVersion: legacyRevision,
  capabilities: {},
  clientInfo: { name: "meanwhile", version: "0" },
};

interface Opening {
  readonly era: GuestEra;
  /** Whose guest it is alone. */
  readonly connection?: ClientConnection;
  readonly params?: Json;
  readonly onClose?: () => void;
}

/** What an author has registered by hand: asked as any server would be, at the other end of a pair in memory. */
export class Guest {
  readonly #opening: Opening;
  readonly #log: Logger;
  readonly #pair: GuestPair;
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

  static async open(options: GuestOptions, opening: Opening): Promise<Guest> {
    const guest = new Guest(opening, options.log);
    try {
      const { failed } = await connectGuest(options, opening.era, guest.#pair);
      await Promise.race([guest.#begin(), failed]);
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
    if (this.#isClosed) throw new ProtocolError(RpcCode.Internal, "The server is closing.");
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
      return bounded(fieldsOf(result), method, textOf(params.name));
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
    this.#inFlight.failAll(new ProtocolError(RpcCode.Internal, "The server is closing."));
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
      if (whom === undefined) throw new ProtocolError(RpcCode.Method, "Nobody is there to be asked.");
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

/** A result as large as a command's may be; of a larger one the model is told, or else whoever asked. */
function bounded(result: Result, method: string, name = method): Result {
  if (!isTooLarge(result)) return result;
  const most = `${maxResultBytes / 1024 / 1024} MiB`;
  if (method !== "tools/call")
    throw new ProtocolError(RpcCode.Internal, `The answer to ${method} is larger than ${most}.`);
  const text = `${name} returned more than ${most}; write it to a file and return the path.`;
  return { content: [{ type: "text", text }], isError: true };
}

function isTooLarge(result: Result): boolean {
  // No letter takes more than six bytes, escaped, so most results need not be written to be counted.
  const few = maxResultBytes / 6;
  try {
    return weigh(result, few) >= few && Buffer.byteLength(JSON.stringify(result)) > maxResultBytes;
  } catch {
    // Whoever writes it says why it cannot be written.
    return false;
  }
}
