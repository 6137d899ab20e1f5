import type { Caller } from "../command/caller.ts";
import { RpcCode } from "../errors.ts";
import { hasClaim, isModernClaim, logLevels, refuseIssue } from "../wire/claim.ts";
import { fieldsOf, type Json, textOf } from "../wire/json.ts";
import type { Message } from "../wire/message.ts";
import { metaKeys } from "../wire/request-envelope.ts";
import { modernRevision } from "../wire/revisions.ts";
import { unsupportedRevision } from "../wire/routing.ts";
import type { Tasks2025 } from "./generation/tasks-2025.ts";
import type { Guest } from "./guest.ts";
import type { Guests } from "./guests.ts";
import { clientOf, IncomingRequest, type Way } from "./incoming.ts";
import { OwnRequests } from "./own-requests.ts";
import { badParams, objectParam, textParam } from "./params.ts";
import type {
  AskLimits,
  ClientCapabilities,
  ClientConnection,
  ClientIdentity,
  ClientRequest,
  Handler,
  Result,
} from "./request.ts";
import { agreeOn, isBug, methodNotFound, type Router, toRpcError } from "./router.ts";
import type { Served } from "./serving.ts";

type Id = string | number;

export interface ConversationFacts {
  readonly caller: Caller;
  readonly door: ClientRequest["door"];
  /** For what belongs to no request. */
  readonly way: Way;
  /** Whether `way` reaches the client now. Default: always. */
  readonly canPush?: () => boolean;
  readonly hostName?: string | undefined;
  readonly folder?: string | undefined;
  readonly isFront?: boolean;
  /**
   * Requests of ours are numbered from here: the answer to one of an earlier server must not be taken for the answer to
   * ours.
   */
  readonly firstId?: number;
  /** Over HTTP each request says which it is of. */
  readonly era?: "legacy" | "modern";
}

/** How a conversation's first words have decided; a probe with `server/discover` decides nothing. */
type Era = "open" | "legacy" | "modern";

const closedError = new Error("The connection is closed.");
const nobody: ClientIdentity = { revision: "", isModern: false, name: undefined, capabilities: {}, wantsLog: false };

/** One client: as long as its pipe is open, its session lasts or, since 2026-07-28 over HTTP, its request runs. */
export class Conversation implements ClientConnection {
  readonly #served: Served;
  readonly #facts: ConversationFacts;
  readonly #router: Router;
  readonly #requests = new Map<Id, IncomingRequest>();
  #closed: AbortController | undefined;
  #isClosed = false;
  #jobs: Set<string> | undefined;
  #own: OwnRequests | undefined;
  #streamListeners: Set<() => void> | undefined;
  #era: Era;
  #client = nobody;
  #logLevel: string | undefined;
  #tasks2025: Tasks2025 | undefined;
  #ownMethods: Readonly<Record<string, Handler>> | undefined;
  /** Of this session alone. */
  #guest: Promise<Guest> | undefined;
  #openGuest: Guest | undefined;

  constructor(served: Served, facts: ConversationFacts) {
    this.#served = served;
    this.#facts = facts;
    this.#router = served.routerFor(facts.caller);
    this.#era = facts.era ?? "open";
    if (facts.era === "legacy") this.#begin2025();
  }

  get hostName(): string | undefined {
    return this.#facts.hostName;
  }

  get folder(): string | undefined {
    return this.#facts.folder;
  }

  get isFront(): boolean {
    return this.#facts.isFront === true;
  }

  get canPush(): boolean {
    return this.#facts.canPush?.() ?? true;
  }

  get closed(): AbortSignal {
    if (this.#closed === undefined) {
      this.#closed = new AbortController();
      if (this.#isClosed) this.#closed.abort(closedError);
    }
    return this.#closed.signal;
  }

  get jobs(): Set<string> {
    this.#jobs ??= new Set();
    return this.#jobs;
  }

  get client(): ClientIdentity {
    return this.#client;
  }

  get caller(): Caller {
    return this.#facts.caller;
  }

  get door(): ClientRequest["door"] {
    return this.#facts.door;
  }

  get tasks2025(): Tasks2025 | undefined {
    return this.#tasks2025;
  }

  /** Requests that have not been answered. */
  get running(): number {
    return this.#requests.size;
  }

  isRunning(id: Id): boolean {
    return this.#requests.has(id);
  }

  onStream(listener: () => void): () => void {
    this.#streamListeners ??= new Set();
    this.#streamListeners.add(listener);
    return () => this.#streamListeners?.delete(listener);
  }

  /** The client has opened a stream for messages of our own. */
  streamOpened(): void {
    for (const listener of this.#streamListeners ?? []) listener();
  }

  /**
   * What the author has registered by hand: of this session alone, or for all clients of the era. A probe of another
   * era decides nothing.
   */
  guestFor({ isModern }: ClientIdentity): Promise<Guest> | undefined {
    if (this.#guest !== undefined && !isModern) return this.#guest;
    return this.#served.guests?.shared(isModern ? "modern" : "legacy");
  }

  openGuestFor({ isModern }: ClientIdentity): Guest | undefined {
    if (this.#openGuest !== undefined && !isModern) return this.#openGuest;
    return this.#served.guests?.openShared(isModern ? "modern" : "legacy");
  }

  receive(message: Message, way = this.#facts.way): void {
    if (this.#isClosed) return;
    const { id, method, params = {} } = message;
    if (method === undefined) this.#own?.settle(message);
    else if (id === undefined || id === null) this.#heed(method, params);
    else this.#begin(id, method, params, way);
  }

  notify(method: string, params: Json): void {
    this.send({ method, params });
  }

  ask(method: string, params: Json, options: AskLimits): Promise<unknown> {
    return this.askBy(this.#facts.way, { method, params }, options);
  }

  async askBy(way: Way, question: { method: string; params: Json }, limits: AskLimits): Promise<unknown> {
    limits.signal.throwIfAborted();
    if (this.#isClosed) throw closedError;
    this.#own ??= new OwnRequests(this.#served.clock, this.#facts.firstId ?? 0);
    return await this.#own.ask(question, (message) => this.send(message, way), limits);
  }

  /** The commands have changed, and with them these lists. */
  sendListsChanged(lists: readonly string[]): void {
    if (this.#era === "legacy") for (const list of lists) this.send({ method: `notifications/${list}/list_changed` });
  }

  /** Whoever still waits for an answer is told that none will come. */
  leave(): void {
    for (const request of this.#requests.values())
      this.send({ id: request.id, error: { code: RpcCode.Internal, message: "The server is closing." } }, request.way);
    this.close();
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    // Before the requests are aborted, so that they can tell a lost client from one that cancels.
    this.#closed?.abort(closedError);
    this.#own?.failAll(closedError);
    for (const request of this.#requests.values()) request.abort(closedError);
    this.#requests.clear();
    this.#openGuest?.close();
  }

  /** The level from which on log lines are sent that a request of this client causes; undefined for none. */
  logLevelFor({ client, meta }: IncomingRequest): string | undefined {
    return client.isModern ? textOf(meta[metaKeys.logLevel]) : (this.#logLevel ?? "debug");
  }

  send(message: Message, way = this.#facts.way): void {
    if (!this.#isClosed) way.send(message);
  }

  #begin(id: Id, method: string, params: Json, way: Way): void {
    try {
      const meta = params._meta === undefined ? {} : objectParam(params, "_meta");
      const isModern = this.#decide(method, params, meta);
      const handler = this.#handlerOf(method, isModern);
      const request = new IncomingRequest(this, way, {
        id,
        params,
        meta,
        client: isModern ? clientOf(meta) : this.#client,
      });
      this.#requests.set(id, request);
      this.#run({ method, params, isModern }, handler, request);
    } catch (error) {
      this.send({ id, error: toRpcError(error) }, way);
    }
  }

  /** What is there at once is answered at once. */
  #run(asked: { method: string; params: Json; isModern: boolean }, handler: Handler, request: IncomingRequest): void {
    const { method, params, isModern } = asked;
    const answer = (result: Result) =>
      this.#answer(request, { id: request.id, result: this.#router.finish(method, result, isModern) });
    const fail = (error: unknown) => {
      this.#answer(request, { id: request.id, error: toRpcError(error) });
      // What a client is told nothing about is somebody's to find.
      if (isBug(error)) this.#served.log.error("a request failed", { method: method.slice(0, 100), error });
    };
    try {
      const result = handler(params, request);
      if (result instanceof Promise) result.then(answer, fail);
      else answer(result);
    } catch (error) {
      fail(error);
    }
  }

  #answer(request: IncomingRequest, message: Message): void {
    // One that was taken back, or whose client is gone, wants no answer.
    if (this.#requests.get(request.id) !== request) return;
    this.#requests.delete(request.id);
    this.send(message, request.way);
  }

  /**
   * The first request that is no probe decides the era of its connection; throws what an improper one is answered with.
   * True for the modern one.
   */
  #decide(method: string, params: Json, meta: Json): boolean {
    if (this.#era === "legacy") return false;
    const isHandshake = method === "initialize" && !isModernClaim(meta);
    if (this.#era === "modern" && isHandshake) throw unsupportedRevision(textOf(params.protocolVersion));
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
    refuseIssue(meta);
    if (meta[metaKeys.revision] !== modernRevision) throw unsupportedRevision(textOf(meta[metaKeys.revision]));
    if (method !== "server/discover") this.#era = "modern";
    return true;
  }

  #begin2025(): void {
    this.#era = "legacy";
    this.#tasks2025 = this.#served.createTasks2025(this);
    this.#ownMethods = {
      ...this.#tasks2025.methods(this.#facts.caller),
      initialize: (params) => this.#initialize(params),
      "logging/setLevel": (params) => this.#setLogLevel(params),
    };
  }

  #handlerOf(method: string, isModern: boolean): Handler {
    const own = isModern
      ? this.#router.modern.get(method)
      : (ownOf(this.#ownMethods, method) ?? this.#router.legacy.get(method));
    if (own !== undefined) return own;
    if (this.#served.guests === undefined) throw methodNotFound;
    // What an author has made for it is asked in our name.
    return async (params, request) => await ((await request.guest()) as Guest).request(method, params, request);
  }

  #initialize(params: Json): Json | Promise<Json> {
    const asked = textParam(params, "protocolVersion");
    const capabilities = objectParam(params, "capabilities") as ClientCapabilities;
    const info = objectParam(params, "clientInfo");
    const name = textParam(info, "name");
    textParam(info, "version");
    const revision = agreeOn(asked);
    this.#client = { revision, isModern: false, name, capabilities, wantsLog: this.#client.wantsLog };
    const hello = this.#router.hello(revision, this.#facts.caller);
    const { guests } = this.#served;
    return guests === undefined ? hello : this.#greetGuest(guests, hello, params);
  }

  /** What an author has registered is of this session alone, and knows its client. */
  async #greetGuest(guests: Guests, hello: Json, params: Json): Promise<Json> {
    this.#openGuest?.close();
    this.#guest = guests.open(this, params);
    this.#openGuest = await this.#guest;
    if (this.#isClosed) this.#openGuest.close();
    return { ...hello, capabilities: this.#openGuest.mergeCapabilities(fieldsOf(hello.capabilities)) };
  }

  async #setLogLevel(params: Json): Promise<Json> {
    const level = logLevels.find((known) => known === params.level);
    if (level === undefined) throw badParams(`\`level\` must be one of ${logLevels.join(", ")}.`);
    this.#logLevel = level;
    this.#client = { ...this.#client, wantsLog: true };
    await this.#openGuest?.request("logging/setLevel", params);
    return {};
  }

  #heed(method: string, params: Json): void {
    if (method !== "notifications/cancelled") {
      this.#openGuest?.notify(method, params);
      return;
    }
    const id = params.requestId as Id;
    const request = this.#requests.get(id);
    this.#requests.delete(id);
    request?.abort(params.reason);
    request?.way.drop?.();
  }
}

function ownOf(methods: Readonly<Record<string, Handler>> | undefined, method: string): Handler | undefined {
  return methods !== undefined && Object.hasOwn(methods, method) ? methods[method] : undefined;
}
