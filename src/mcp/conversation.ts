import type { Authentication } from "../auth/authentication.ts";
import type { Caller } from "../command/caller.ts";
import { RpcCode } from "../errors.ts";
import type { GivenUpCall } from "../host/learned-limits.ts";
import { hasClaim, isModernClaim, logLevels, refuseIssue } from "../wire/claim.ts";
import { type Json, textOf } from "../wire/json.ts";
import type { Message } from "../wire/message.ts";
import { metaKeys } from "../wire/request-envelope.ts";
import { isPassedOn, modernRevision } from "../wire/revisions.ts";
import { unsupportedRevision } from "../wire/routing.ts";
import { ClientFolder, type ReadFolder } from "./client-folder.ts";
import type { Tasks2025 } from "./generation/tasks-2025.ts";
import type { ConversationGuest, GuestView } from "./guest-view.ts";
import { Handshake } from "./handshake.ts";
import { clientOf, greetedClient, IncomingRequest, type Way } from "./incoming.ts";
import { OwnRequests } from "./own-requests.ts";
import { badParams, objectParam } from "./params.ts";
import type {
  AskLimits,
  ClientConnection,
  ClientIdentity,
  ClientRequest,
  Handler,
  Result,
  SessionEnvironment,
} from "./request.ts";
import { isBug, methodNotFound, type Router, toRpcError } from "./router.ts";
import type { Served } from "./serving.ts";

type Id = string | number;

export interface ConversationFacts {
  /** Whose conversation it is. A request may come with another credential of the same caller. */
  readonly authentication: Authentication;
  readonly door: ClientRequest["door"];
  /** For what belongs to no request. */
  readonly way: Way;
  /** Whether `way` reaches the client now. Default: always. */
  readonly canPush?: () => boolean;
  readonly hostName?: string | undefined;
  readonly folder?: string | undefined;
  /** Given where the client may name its working folder, because nothing else says which it is. */
  readonly readFolder?: ReadFolder | undefined;
  readonly environment?: SessionEnvironment | undefined;
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

/** A request as it is run. `allowed` rejects for a caller with too few scopes. */
interface Asked {
  readonly method: string;
  readonly params: Json;
  readonly isModern: boolean;
  readonly router: Router;
  readonly allowed: undefined | Promise<void>;
}

const closedError = new Error("The connection is closed.");
const nobody: ClientIdentity = { revision: "", isModern: false, name: undefined, capabilities: {}, wantsLog: false };

/** One client: as long as its pipe is open, its session lasts or, since 2026-07-28 over HTTP, its request runs. */
export class Conversation implements ClientConnection {
  readonly #served: Served;
  readonly #facts: ConversationFacts;
  readonly #requests = new Map<Id, IncomingRequest>();
  readonly #handshake: Handshake;
  readonly #folder: ClientFolder | undefined;
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
  readonly #guest: ConversationGuest | undefined;

  constructor(served: Served, facts: ConversationFacts) {
    this.#served = served;
    this.#facts = facts;
    this.#handshake = new Handshake(served.clock);
    this.#folder = facts.readFolder === undefined ? undefined : new ClientFolder(facts.readFolder);
    this.#guest = served.guests?.join(this);
    this.#era = facts.era ?? "open";
    if (facts.era === "legacy") this.#begin2025();
  }

  get hostName(): string | undefined {
    return this.#facts.hostName;
  }

  get folder(): string | undefined {
    return this.#facts.folder ?? this.#folder?.path;
  }

  get environment(): SessionEnvironment | undefined {
    return this.#facts.environment;
  }

  get isOfOneRequest(): boolean {
    return this.#facts.era === "modern";
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
    return this.#facts.authentication.caller;
  }

  get authentication(): Authentication {
    return this.#facts.authentication;
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

  get session(): string | undefined {
    return this.#guest?.session;
  }

  /** What somebody else's server has, for clients like this one. */
  guestFor(client: ClientIdentity): Promise<GuestView> | undefined {
    return this.#guest?.for(client);
  }

  openGuestFor(client: ClientIdentity): GuestView | undefined {
    return this.#guest?.openFor(client);
  }

  /** False for an answer, or a request taken back, of which nothing is known here. */
  receive(message: Message, way = this.#facts.way): boolean {
    if (this.#isClosed) return false;
    const { id, method, params = {} } = message;
    if (method === undefined) return this.#own?.settle(message) ?? false;
    if (id === undefined || id === null) return this.#heed(method, params);
    this.#begin(id, method, params, way);
    return true;
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

  /** Over HTTP: the client closed the stream of this request before it was answered. */
  noteHangUp(id: Id): void {
    const request = this.#requests.get(id);
    if (request === undefined || this.#isClosed || request.isGivenUp) return;
    request.isGivenUp = true;
    this.#served.noteClosedStream(request, this.#givenUp(request));
  }

  /** Over HTTP: the client closed the stream of its session. */
  noteLostStream(): void {
    const { client, caller, door } = this;
    if (!this.#isClosed) this.#served.noteClosedStream({ client, caller, door, connection: this }, undefined);
  }

  #givenUp({ method, arrivedAt, isSilent }: IncomingRequest): GivenUpCall | undefined {
    return method === "tools/call" ? { ageMs: this.#served.clock.monotonic() - arrivedAt, isSilent } : undefined;
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    // Before the requests are aborted, so that they can tell a lost client from one that cancels.
    this.#closed?.abort(closedError);
    this.#own?.failAll(closedError);
    this.#handshake.close();
    for (const request of this.#requests.values()) request.abort(closedError);
    this.#requests.clear();
    this.#guest?.close();
  }

  /** The level from which on log lines are sent that a request of this client causes; undefined for none. */
  logLevelFor({ client, meta }: IncomingRequest): string | undefined {
    return client.isModern ? textOf(meta[metaKeys.logLevel]) : (this.#logLevel ?? "debug");
  }

  send(message: Message, way = this.#facts.way): void {
    if (this.#isClosed) return;
    const handshake = this.#handshake;
    if (!handshake.isOpen || !handshake.holdsBack(message, this.#requests.size === 1, () => way.send(message)))
      way.send(message);
  }

  #begin(id: Id, method: string, params: Json, way: Way): void {
    try {
      const meta = params._meta === undefined ? {} : objectParam(params, "_meta");
      const authentication = way.authentication ?? this.authentication;
      const router = this.#served.routerFor(authentication);
      const isModern = this.#decide({ method, params, meta }, router);
      const handler = this.#handlerOf(method, isModern, router);
      this.#folder?.note(meta);
      const request = new IncomingRequest(this, way, {
        id,
        method,
        params,
        meta,
        client: isModern ? clientOf(meta) : this.#client,
        arrivedAt: way.arrivedAt ?? this.#served.clock.monotonic(),
      });
      const allowed = this.#served.gate.authorize(authentication, method, params);
      this.#requests.set(id, request);
      this.#run({ method, params, isModern, router, allowed }, handler, request);
    } catch (error) {
      this.send({ id, error: toRpcError(error) }, way);
    }
  }

  /** What is there at once is answered at once. */
  #run(asked: Asked, handler: Handler, request: IncomingRequest): void {
    const { method, params, isModern, router, allowed } = asked;
    const isHandshake = method === "initialize";
    if (isHandshake) this.#handshake.begin();
    const answer = (result: Result) => {
      this.#answer(request, { id: request.id, result: router.finish(method, result, isModern) });
      if (isHandshake) for (const late of this.#handshake.end()) this.send(late);
    };
    const fail = (error: unknown) => {
      this.#answer(request, { id: request.id, error: toRpcError(error) });
      if (isHandshake) this.#handshake.end();
      // What a client is told nothing about is somebody's to find.
      if (isBug(error)) this.#served.log.error("a request failed", { method: method.slice(0, 100), error });
    };
    try {
      // A command goes by the folder of its client, so the folder has to be known first.
      const ask = () => (method === "tools/call" ? this.#folder?.ask(request) : undefined);
      const asking = allowed === undefined ? ask() : allowed.then(ask);
      const result = asking === undefined ? handler(params, request) : asking.then(() => handler(params, request));
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
  #decide({ method, params, meta }: { method: string; params: Json; meta: Json }, router: Router): boolean {
    if (this.#era === "legacy") return false;
    const isHandshake = method === "initialize" && !isModernClaim(meta);
    if (this.#era === "modern" && isHandshake) throw unsupportedRevision(textOf(params.protocolVersion));
    if (this.#era === "open" && (isHandshake || !hasClaim(meta))) {
      this.#begin2025();
      return false;
    }
    // Once the era is known, a method that it does not have comes before anything that is wrong with the request.
    if (this.#era === "modern") this.#handlerOf(method, true, router);
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
      ...this.#tasks2025.methods(this.caller),
      initialize: (params) => this.#initialize(params),
      "logging/setLevel": (params) => this.#setLogLevel(params),
    };
  }

  #handlerOf(method: string, isModern: boolean, router: Router): Handler {
    const own = isModern ? router.modern.get(method) : (ownOf(this.#ownMethods, method) ?? router.legacy.get(method));
    if (own !== undefined) return own;
    const guest = this.#guest;
    if (guest === undefined || !isPassedOn(method, isModern)) throw methodNotFound;
    return (params, request) => guest.answer(method, params, request);
  }

  #initialize(params: Json): Json | Promise<Json> {
    this.#client = greetedClient(params, this.#client.wantsLog);
    const hello = this.#served.routerFor(this.authentication).hello(this.#client.revision, this.caller);
    return this.#guest?.greet(hello, params) ?? hello;
  }

  async #setLogLevel(params: Json): Promise<Json> {
    const level = logLevels.find((known) => known === params.level);
    if (level === undefined) throw badParams(`\`level\` must be one of ${logLevels.join(", ")}.`);
    this.#logLevel = level;
    this.#client = { ...this.#client, wantsLog: true };
    await this.#guest?.setLevel(params);
    return {};
  }

  #heed(method: string, params: Json): boolean {
    if (method === "notifications/roots/list_changed") this.#folder?.forgetRoots();
    if (method !== "notifications/cancelled") {
      this.#guest?.notify(method, params);
      return true;
    }
    const id = params.requestId as Id;
    const request = this.#requests.get(id);
    const givenUp = request?.isGivenUp === false ? this.#givenUp(request) : undefined;
    if (request !== undefined && givenUp !== undefined) this.#served.noteCancelled(request, givenUp);
    this.#requests.delete(id);
    request?.abort(params.reason);
    request?.way.drop?.();
    return request !== undefined;
  }
}

function ownOf(methods: Readonly<Record<string, Handler>> | undefined, method: string): Handler | undefined {
  return methods !== undefined && Object.hasOwn(methods, method) ? methods[method] : undefined;
}
