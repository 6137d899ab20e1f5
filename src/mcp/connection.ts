import type { Clock } from "../clock.ts";
import { ProtocolError } from "../errors.ts";
import type { Logger } from "../log.ts";
import { metaKeys } from "../wire/envelope.ts";
import { fieldsOf, isObject, type Json, textOf } from "../wire/json.ts";
import type { Message } from "../wire/message.ts";
import { modernRevision } from "../wire/revisions.ts";
import type { Caller } from "./caller.ts";
import { describeIssue, envelopeIssueOf, hasClaim, isModernClaim, logLevels } from "./envelope-check.ts";
import { Listening, type ListName } from "./listening.ts";
import type { Outbound } from "./outbound.ts";
import { badParams, objectParam, textParam } from "./params.ts";
import type { ClientCapabilities } from "./questions.ts";
import type { AskOptions, Client, Connection, Handler, Request } from "./request.ts";
import { agreeOn, isBug, type Router, toRpcError } from "./router.ts";
import type { TaskSubscriptions } from "./subscriptions.ts";
import type { Tasks2025 } from "./tasks-2025.ts";

type Id = string | number;

/** Where messages to the client go. */
export interface Channel {
  readonly outbound: Outbound;
  send(message: Message): void;
}

export interface ConnectionOptions {
  readonly router: Router;
  readonly channel: Channel;
  readonly caller: Caller;
  readonly clock: Clock;
  readonly log: Logger;
  readonly hostName: string | undefined;
  readonly folder: string | undefined;
  readonly isFront: boolean;
  /** Requests of ours are numbered from here: the answer to one of an earlier server must not be taken for the answer to ours. */
  readonly firstId: number;
  readonly createTasks2025: (connection: Connection) => Tasks2025;
  readonly tasks: TaskSubscriptions;
  /** The lists that can change here. */
  readonly lists: readonly ListName[];
}

/** How a connection's first words have decided; a probe with `server/discover` decides nothing. */
type Era = "open" | "legacy" | "modern";

interface Waiting {
  resolve(result: unknown): void;
  reject(error: unknown): void;
}

const methodNotFound = new ProtocolError(-32601, "Method not found");
const closedError = new Error("The connection is closed.");

/** One client on a pipe or a socket, in either era. */
export class PipeConnection implements Connection {
  readonly hostName: string | undefined;
  readonly folder: string | undefined;
  readonly isFront: boolean;
  readonly canPush = true;
  readonly jobs = new Set<string>();
  readonly #options: ConnectionOptions;
  readonly #closed = new AbortController();
  readonly #requests = new Map<Id, PipeRequest>();
  readonly #waiting = new Map<number, Waiting>();
  readonly #listening: Listening;
  #era: Era = "open";
  #client: Client = { revision: "", isModern: false, name: undefined, capabilities: {}, wantsLog: false };
  #logLevel: string | undefined;
  #tasks2025: Tasks2025 | undefined;
  #ownMethods: Readonly<Record<string, Handler>> = {};
  #lastId: number;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.hostName = options.hostName;
    this.folder = options.folder;
    this.isFront = options.isFront;
    this.#lastId = options.firstId - 1;
    this.#listening = new Listening({ tasks: options.tasks, lists: options.lists, send: (message) => this.send(message) });
  }

  get closed(): AbortSignal {
    return this.#closed.signal;
  }

  get client(): Client {
    return this.#client;
  }

  get caller(): Caller {
    return this.#options.caller;
  }

  get outbound(): Outbound {
    return this.#options.channel.outbound;
  }

  get tasks2025(): Tasks2025 | undefined {
    return this.#tasks2025;
  }

  onStream(): () => void {
    // A pipe is always open, so there is nothing to wait for.
    return () => undefined;
  }

  isAuthorsTool(): boolean {
    return false;
  }

  receive(message: Message): void {
    const { id, method, params = {} } = message;
    if (method === undefined) this.#settle(message);
    else if (id === undefined || id === null) this.#heed(method, params);
    else this.#begin(id, method, params);
  }

  notify(method: string, params: Json): void {
    this.send({ method, params });
  }

  async ask(method: string, params: Json, { signal, timeoutMs }: AskOptions): Promise<unknown> {
    signal.throwIfAborted();
    if (this.#closed.signal.aborted) throw closedError;
    const id = ++this.#lastId;
    const answer = Promise.withResolvers<unknown>();
    this.#waiting.set(id, answer);
    const giveUp = (reason: unknown) => {
      if (this.#waiting.delete(id)) this.notify("notifications/cancelled", { requestId: id, reason: String(reason) });
      answer.reject(reason);
    };
    const onAbort = () => giveUp(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    const stopClock = this.#options.clock.after(timeoutMs, () => giveUp(new Error(`No answer to ${method} came in time.`)));
    this.#options.channel.send({ id, method, params });
    try {
      return await answer.promise;
    } finally {
      stopClock();
      signal.removeEventListener("abort", onAbort);
    }
  }

  /** The commands have changed, and with them the tools and the prompts. */
  sendListsChanged(): void {
    for (const list of this.#options.lists) {
      if (this.#era === "legacy") this.#options.channel.send({ method: `notifications/${list}/list_changed` });
      else this.#listening.listChanged(list);
    }
  }

  close(): void {
    if (this.#closed.signal.aborted) return;
    // Before the requests are aborted, so that they can tell a lost client from one that cancels.
    this.#closed.abort(closedError);
    for (const { reject } of this.#waiting.values()) reject(closedError);
    for (const request of this.#requests.values()) request.abort(closedError);
    this.#waiting.clear();
    this.#requests.clear();
  }

  /** The level from which on log lines are sent; undefined for none. */
  logLevelFor(meta: Json): string | undefined {
    return this.#era === "modern" ? textOf(meta[metaKeys.logLevel]) : (this.#logLevel ?? "debug");
  }

  send(message: Message): void {
    if (!this.#closed.signal.aborted) this.#options.channel.send(message);
  }

  #begin(id: Id, method: string, params: Json): void {
    let request: PipeRequest | undefined;
    try {
      const meta = params._meta === undefined ? {} : objectParam(params, "_meta");
      const isModern = this.#decide(method, params, meta);
      const handler = this.#handlerOf(method, isModern);
      request = new PipeRequest(this, { id, params, meta, client: isModern ? clientOf(meta) : this.#client });
      this.#requests.set(id, request);
      if (method === "subscriptions/listen" && isModern) void this.#listening.begin(id, params, request);
      else void this.#run({ id, method, params, isModern }, handler, request);
    } catch (error) {
      this.send({ id, error: toRpcError(error) });
    }
  }

  async #run(
    { id, method, params, isModern }: { id: Id; method: string; params: Json; isModern: boolean },
    handler: Handler,
    request: PipeRequest,
  ): Promise<void> {
    let answer: Message;
    try {
      const result = await handler(params, request);
      answer = { id, result: isModern ? this.#options.router.dress(method, result) : result };
    } catch (error) {
      answer = { id, error: toRpcError(error) };
      // What a client is told nothing about is somebody's to find.
      if (isBug(error)) this.#options.log.error("a request failed", { method: method.slice(0, 100), error });
    }
    // One that was taken back, or whose client is gone, wants no answer.
    if (this.#requests.get(id) !== request) return;
    this.#requests.delete(id);
    this.send(answer);
  }

  /** The first request that is no probe decides the era of its connection; throws what an improper one is answered with. True for the modern one. */
  #decide(method: string, params: Json, meta: Json): boolean {
    if (this.#era === "legacy") return false;
    const isHandshake = method === "initialize" && !isModernClaim(meta);
    if (this.#era === "modern" && isHandshake) throw unsupported(textOf(params.protocolVersion));
    if (this.#era === "open" && (isHandshake || !hasClaim(meta))) {
      this.#begin2025();
      return false;
    }
    // Once the era is known, a method that it does not have comes before anything that is wrong with the request.
    if (this.#era === "modern") this.#handlerOf(method, true);
    if (!hasClaim(meta))
      throw badParams(
        `Request is missing the required _meta envelope for protocol revision ${modernRevision} (${metaKeys.revision}, ${metaKeys.clientCapabilities})`,
      );
    const issue = envelopeIssueOf(meta);
    if (issue !== undefined) throw badParams(describeIssue(issue), { envelope: issue });
    if (meta[metaKeys.revision] !== modernRevision) throw unsupported(textOf(meta[metaKeys.revision]));
    if (method !== "server/discover") this.#era = "modern";
    return true;
  }

  #begin2025(): void {
    this.#era = "legacy";
    this.#tasks2025 = this.#options.createTasks2025(this);
    this.#ownMethods = {
      ...this.#tasks2025.methods(this.#options.caller),
      initialize: async (params) => this.#initialize(params),
      "logging/setLevel": async (params) => this.#setLogLevel(params),
    };
  }

  #handlerOf(method: string, isModern: boolean): Handler {
    const { router } = this.#options;
    const handler = isModern ? router.modern.get(method) : Object.hasOwn(this.#ownMethods, method) ? this.#ownMethods[method] : router.legacy.get(method);
    if (handler === undefined && !(isModern && method === "subscriptions/listen")) throw methodNotFound;
    return handler ?? noAnswer;
  }

  #initialize(params: Json): Json {
    const asked = textParam(params, "protocolVersion");
    const capabilities = objectParam(params, "capabilities") as ClientCapabilities;
    const info = objectParam(params, "clientInfo");
    const name = textParam(info, "name");
    textParam(info, "version");
    const revision = agreeOn(asked);
    this.#client = { revision, isModern: false, name, capabilities, wantsLog: this.#client.wantsLog };
    return this.#options.router.hello(revision, this.#options.caller);
  }

  #setLogLevel(params: Json): Json {
    const level = logLevels.find((known) => known === params.level);
    if (level === undefined) throw badParams(`\`level\` must be one of ${logLevels.join(", ")}.`);
    this.#logLevel = level;
    this.#client = { ...this.#client, wantsLog: true };
    return {};
  }

  #heed(method: string, params: Json): void {
    if (method !== "notifications/cancelled") return;
    const id = params.requestId as Id;
    const request = this.#requests.get(id);
    this.#requests.delete(id);
    request?.abort(params.reason);
  }

  #settle({ id, result, error }: Message): void {
    const waiting = this.#waiting.get(Number(id));
    this.#waiting.delete(Number(id));
    if (error === undefined) waiting?.resolve(result);
    else waiting?.reject(new ProtocolError(error.code, error.message, error.data));
  }
}

const noAnswer: Handler = () => new Promise(() => undefined);

function unsupported(requested = "unknown"): ProtocolError {
  return new ProtocolError(-32022, `Unsupported protocol version: ${requested}`, { supported: [modernRevision], requested });
}

function clientOf(meta: Json): Client {
  const info = fieldsOf(meta[metaKeys.clientInfo]);
  return {
    revision: modernRevision,
    isModern: true,
    name: textOf(info.name),
    capabilities: fieldsOf(meta[metaKeys.clientCapabilities]) as ClientCapabilities,
    wantsLog: meta[metaKeys.logLevel] !== undefined,
  };
}

interface Asked {
  readonly id: Id;
  readonly params: Json;
  readonly meta: Json;
  readonly client: Client;
}

class PipeRequest implements Request {
  readonly connection: PipeConnection;
  readonly id: Id;
  readonly client: Client;
  readonly meta: Json;
  readonly door = "stdio";
  readonly exchange = undefined;
  readonly #params: Json;
  #stop: AbortController | undefined;

  constructor(connection: PipeConnection, { id, params, meta, client }: Asked) {
    this.connection = connection;
    this.id = id;
    this.#params = params;
    this.meta = meta;
    this.client = client;
    const { progressToken } = meta;
    if (progressToken !== undefined && typeof progressToken !== "string" && !Number.isSafeInteger(progressToken))
      throw badParams("`_meta.progressToken` must be a text or a whole number.");
  }

  get caller(): Caller {
    return this.connection.caller;
  }

  get outbound(): Outbound {
    return this.connection.outbound;
  }

  get progressToken(): Request["progressToken"] {
    return this.meta.progressToken as Request["progressToken"];
  }

  /** What looks like a message of its own is no answer. */
  get inputResponses(): Json {
    const given = Object.entries(fieldsOf(this.#params.inputResponses));
    return Object.fromEntries(given.filter(([, answer]) => isObject(answer) && !("method" in answer) && !("result" in answer)));
  }

  get requestState(): unknown {
    return this.client.isModern ? this.#params.requestState : undefined;
  }

  get signal(): AbortSignal {
    this.#stop ??= new AbortController();
    return this.#stop.signal;
  }

  abort(reason: unknown): void {
    this.#stop ??= new AbortController();
    this.#stop.abort(reason);
  }

  notify(method: string, params: Json): void {
    this.connection.notify(method, params);
  }

  ask(method: string, params: Json, options: AskOptions): Promise<unknown> {
    return this.connection.ask(method, params, options);
  }

  log(level: (typeof logLevels)[number], data: unknown, logger: string): void {
    const least = this.connection.logLevelFor(this.meta);
    const rankOf = (name: string) => logLevels.indexOf(name as (typeof logLevels)[number]);
    if (least !== undefined && rankOf(level) >= rankOf(least)) this.notify("notifications/message", { level, data, logger });
  }
}
