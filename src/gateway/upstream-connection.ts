import type { StreamMark } from "../client/connection/http-link.ts";
import { type Clock, systemClock } from "../clock.ts";
import { withoutReservedMeta } from "../command/foreign.ts";
import { messageOf, ProtocolError, RpcCode } from "../errors.ts";
import type { Logger } from "../log.ts";
import { toAnswered } from "../mcp/guest-answer.ts";
import { GuestAudience } from "../mcp/guest-audience.ts";
import type { GuestClient } from "../mcp/guest-client.ts";
import { type GuestEra, hangUpNotice } from "../mcp/guest-host.ts";
import type { ClientConnection, Result } from "../mcp/request.ts";
import { type Id, InFlight } from "../wire/in-flight.ts";
import type { Json } from "../wire/json.ts";
import type { Message } from "../wire/message.ts";
import { ConnectionError } from "../wire/peer-errors.ts";
import { proxyNotice } from "../wire/request-envelope.ts";
import { isModern, tasksExtension } from "../wire/revisions.ts";
import { IgnoredRequests } from "./ignored-requests.ts";
import { UpstreamAsks } from "./upstream-asks.ts";
import { greetUpstream, type UpstreamHello } from "./upstream-greeting.ts";
import type { OpenUpstreamLink, SessionMark, UpstreamAddress, UpstreamLink } from "./upstream-link.ts";
import { hearUnasked, UpstreamListening } from "./upstream-listening.ts";
import { type ListedName, listsIn, noLists, readLists, type UpstreamLists, withRead } from "./upstream-lists.ts";
import { dress, sendOver, type UpstreamRequest, whenOver } from "./upstream-request.ts";

const takesTasks = { capabilities: { extensions: { [tasksExtension]: {} } } };
const closed = () => new ConnectionError("The connection is closed.", { isUnsent: true });

export interface ConnectionTerms {
  readonly address: UpstreamAddress;
  readonly openLink: OpenUpstreamLink;
  /** What its clients speak, and what it is known to speak with them. */
  readonly wanted: GuestEra;
  readonly known: GuestEra | undefined;
  /** What its clients can do, as it is told at a handshake. */
  readonly capabilities: Json;
  /** Whose it is alone. */
  readonly owner: ClientConnection | undefined;
  /** It has to say within this who it is. */
  readonly startMs: number;
  readonly clock: Clock;
  readonly log: Logger;
  readonly onStderr?: (text: string) => void;
  readonly onGone?: () => void;
}

/** One connection to an upstream, from its greeting to its end. */
export class UpstreamConnection {
  readonly #terms: ConnectionTerms;
  readonly #inFlight = new InFlight<Message>();
  /** Whose requests they are that it works on. */
  readonly #clients = new Map<Id, GuestClient>();
  readonly #marks = new Map<Id, (mark: StreamMark) => void>();
  readonly #ignored = new IgnoredRequests({
    clock: systemClock,
    isIdle: () => this.isIdle,
    isOver: () => this.#why !== undefined,
    ping: () => this.request("ping", {}),
    end: () => this.close(new ConnectionError("It has not stopped within 10 s of being told to, so it was ended.")),
    cancelTask: (taskId) => void this.request("tasks/cancel", { taskId }, takesTasks).catch(() => undefined),
  });
  readonly #asks = new UpstreamAsks((answer) => void this.#link?.send(answer).catch(() => undefined));
  readonly #listening = new UpstreamListening({
    inFlight: this.#inFlight,
    send: (message) => this.#link?.send(message) ?? Promise.reject(closed()),
    end: (id) => this.#end(id),
  });
  readonly #audience = new GuestAudience((method, params) => this.request(method, params));
  #link: UpstreamLink | undefined;
  #holders = 0;
  #isLeaving = false;
  #why: ConnectionError | undefined;
  #hello: UpstreamHello | undefined;
  lists: UpstreamLists = noLists;
  /** The lists that it refused, each with its reason. Not among them: one of whose method it knows nothing. */
  readonly refusedLists = new Map<ListedName, string>();
  /** Its lists have changed, and are known. */
  onLists: ((name: ListedName, params: Json) => void) | undefined;
  /** Its session was begun anew: what was set in it is to be set again. */
  onRenewed: (() => void) | undefined;
  onTaskStatus: ((params: Json) => void) | undefined;
  onClose: ((why: ConnectionError) => void) | undefined;
  lastUsedAt: number;

  static async open(terms: ConnectionTerms): Promise<UpstreamConnection> {
    const connection = new UpstreamConnection(terms);
    try {
      await connection.#begin();
      return connection;
    } catch (error) {
      connection.close();
      throw error;
    }
  }

  private constructor(terms: ConnectionTerms) {
    this.#terms = terms;
    this.lastUsedAt = terms.clock.monotonic();
  }

  get hello(): UpstreamHello {
    if (this.#hello === undefined) throw new Error("The upstream has not said who it is.");
    return this.#hello;
  }

  get era(): GuestEra {
    return isModern(this.hello.revision) ? "modern" : "legacy";
  }

  /** Why nothing comes any more; undefined while it is open. */
  get why(): ConnectionError | undefined {
    return this.#why;
  }

  /** Of a server that was started for it. */
  get pid(): number | undefined {
    return this.#link?.pid;
  }

  /** Requests that clients wait for. */
  get calls(): number {
    return this.#clients.size;
  }

  get isIdle(): boolean {
    return this.#clients.size === 0 && this.#holders === 0;
  }

  /** Asks it in the name of a client; who takes the request back takes it back here. */
  request(method: string, asked: Json | ((id: Id) => Json), options: UpstreamRequest = {}): Promise<Result> {
    const { client } = options;
    if (client?.signal.aborted === true) return Promise.reject(client.signal.reason);
    if (this.#why !== undefined || this.#link === undefined) return Promise.reject(this.#why ?? closed());
    this.lastUsedAt = this.#terms.clock.monotonic();
    const { id, answer, fail } = this.#inFlight.open(options.id);
    const params = dress(typeof asked === "function" ? asked(id) : asked, this.#hello, options);
    if (client !== undefined) this.#clients.set(id, client);
    if (options.onMark !== undefined) this.#marks.set(id, options.onMark);
    const onAbort = () => {
      if (options.goesOn?.() !== true) this.#takeBack(id);
      fail(client?.signal.reason);
    };
    client?.signal.addEventListener("abort", onAbort, { once: true });
    sendOver(this.#link, { id, method, params }, options).catch(fail);
    const over = () => {
      client?.signal.removeEventListener("abort", onAbort);
      this.#clients.delete(id);
      this.#marks.delete(id);
      this.lastUsedAt = this.#terms.clock.monotonic();
      this.#leaveWhenIdle();
    };
    return whenOver(answer, over, (answered) => toAnswered(answered, method, params));
  }

  notify(method: string, params: Json = {}): void {
    this.#link?.send({ method, params }).catch((error: unknown) => this.#terms.log.debug(messageOf(error)));
  }

  /** Whoever comes after us finds its session, where it has one; until called off. */
  keepSession(): (() => void) | undefined {
    return this.session === undefined ? undefined : this.#link?.keepSession?.();
  }

  get session(): SessionMark | undefined {
    return this.era === "legacy" ? this.#link?.session : undefined;
  }

  /** Somebody needs it although nothing is asked right now; until called off. */
  hold(): () => void {
    this.#holders += 1;
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#holders -= 1;
      this.#leaveWhenIdle();
    };
  }

  /** What it still does in the name of a request that it has answered is for this client; until called off. */
  worksOn(id: Id, client: GuestClient): () => void {
    this.#clients.set(id, client);
    return () => {
      this.#clients.delete(id);
      this.#leaveWhenIdle();
    };
  }

  /** Has it tell what changes; what of that it honours. */
  async listen(wanted: Json, tell: (method: string, params: Json) => void, over: AbortSignal): Promise<Json> {
    if (this.era === "modern") return await this.#subscribe(wanted, tell, over);
    return await hearUnasked({ audience: this.#audience, capabilities: this.hello.capabilities }, wanted, tell, over);
  }

  /** Who shares it hears of its lists, and of the resources that they subscribe to. */
  get audience(): GuestAudience {
    return this.#audience;
  }

  /** Nobody asks it anything more: it is closed as soon as what it works on is done. */
  leave(): void {
    this.#isLeaving = true;
    this.#leaveWhenIdle();
  }

  close(why = closed()): void {
    this.#finish(why);
    this.#link?.close().catch((error: unknown) => this.#terms.log.debug(messageOf(error)));
  }

  async #begin(): Promise<void> {
    const { address, openLink, startMs, clock, wanted, known, capabilities } = this.#terms;
    const slow = new AbortController();
    const cancelLimit = clock.after(startMs, () => slow.abort(this.#tooLate()));
    const gaveUp = new Promise<never>((_, reject) =>
      slow.signal.addEventListener("abort", () => reject(slow.signal.reason)),
    );
    gaveUp.catch(() => undefined);
    try {
      const opening = openLink(address, {
        onMessage: (message, about) => this.#receive(message, about),
        onClose: (why) => this.#finish(why),
        onStderr: (text) => this.#terms.onStderr?.(text),
        onNotice: (sentence) => this.#terms.log.warn(sentence),
        onRenewed: () => this.onRenewed?.(),
        onMark: (id, mark) => this.#marks.get(id)?.(mark),
      });
      // One that comes too late is not kept.
      opening.then((late) => (this.#why === undefined ? undefined : late.close())).catch(() => undefined);
      const link = await Promise.race([opening, gaveUp]);
      this.#link = link;
      const greeter = {
        clock,
        ask: (method: string, params: Json) => Promise.race([this.#askPlainly(method, params), gaveUp]),
        // Over HTTP the link says so itself.
        notify: (method: string) => link.kind === "command" && this.notify(method),
      };
      this.#hello = await greetUpstream(greeter, { wanted, known, capabilities, signal: slow.signal });
      await link.begin(this.#hello.revision);
      const ask = (method: string, params: Json) => Promise.race([this.request(method, params), gaveUp]);
      const mayFail = (name: ListedName, error: unknown) => this.#mayLackList(name, error, slow.signal);
      this.lists = await readLists(this.hello.capabilities, ask, { mayFail });
      if (this.era === "modern") void this.#followLists();
    } finally {
      cancelLimit();
    }
  }

  #tooLate(): ConnectionError {
    const within = `within ${this.#terms.startMs / 1000} s`;
    const sentence =
      this.#hello === undefined ? `It has not said ${within} who it is.` : `It has not reported its tools ${within}.`;
    return new ConnectionError(sentence, { isUnsent: true });
  }

  /**
   * True where the upstream is of use without this list: it refused it, as it would refuse any client, or it is late with
   * another list than its tools.
   */
  #mayLackList(name: ListedName, error: unknown, slow: AbortSignal): boolean {
    if (this.#why !== undefined) return false;
    const isLate = slow.aborted && error === slow.reason;
    if (isLate ? name === "tools" : error instanceof ConnectionError) return false;
    // Many servers have resources and no templates, and answer that the method is unknown.
    if (name === "resourceTemplates") return true;
    this.#terms.log.warn(`It does not list its ${name}: ${messageOf(error)}`);
    const isUnknown = error instanceof ProtocolError && error.code === RpcCode.Method;
    if (name === "tools" || !isUnknown) this.refusedLists.set(name, messageOf(error));
    return true;
  }

  /** Before it is known what it speaks, nothing is put around a request. */
  async #askPlainly(method: string, params: Json): Promise<Result> {
    const { id, answer, fail } = this.#inFlight.open();
    this.#link?.send({ id, method, params }).catch(fail);
    return toAnswered(await answer, method, params);
  }

  #takeBack(id: Id): void {
    this.#end(id);
    this.#ignored.add(id, this.#terms.address.kind === "command");
  }

  #subscribe(wanted: Json, tell: (method: string, params: Json) => void, over: AbortSignal): Promise<Json> {
    const { taskIds: _ours, ...notifications } = wanted;
    return this.#listening.listen(dress({ notifications }, this.#hello, {}), tell, over);
  }

  /** Over HTTP a stream that is closed is a request taken back, since 2026-07-28. */
  #end(id: Id): void {
    if (this.#terms.address.kind === "url" && this.era === "modern") this.#link?.drop(id);
    else this.notify("notifications/cancelled", { requestId: id });
  }

  async #followLists(): Promise<void> {
    const wanted = { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true };
    const never = new AbortController().signal;
    await this.#subscribe(wanted, (method, params) => void this.hearChange(method, params), never).catch(
      (error: unknown) => this.#terms.log.debug(`its changes are not heard of: ${messageOf(error)}`),
    );
  }

  #receive(message: Message, about: Id | undefined): void {
    const { id, method, params = {} } = message;
    if (method === undefined) {
      this.#ignored.answered(message);
      this.#inFlight.settle(id, message);
    } else if (id !== undefined && id !== null)
      void this.#asks.ask({ id, method, params, whom: this.#clientOf(about), owner: this.#terms.owner });
    else this.#heed(method, params, about);
  }

  /** On a stream of its own a request is known. On a pipe, it is the only caller's that is there, or nobody's. */
  #clientOf(about: Id | undefined): GuestClient | undefined {
    const known = about === undefined ? undefined : this.#clients.get(about);
    if (known !== undefined) return known;
    const all = [...this.#clients.values()];
    const last = all.at(-1);
    if (last === undefined || all.some(({ who }) => who !== last.who)) return undefined;
    return last;
  }

  #heed(method: string, params: Json, about: Id | undefined): void {
    if (method === "notifications/cancelled") return void this.#asks.takeBack(params.requestId as Id);
    if (method === hangUpNotice) return void this.#clients.get(params.requestId as Id)?.hangUp?.();
    if (method === proxyNotice || this.#listening.heed(method, params)) return;
    if (method.endsWith("/list_changed") || method === "notifications/resources/updated")
      return void this.hearChange(method, params);
    if (method === "notifications/tasks/status" || method === "notifications/tasks")
      return void this.onTaskStatus?.(params);
    if (method === "notifications/progress") return void this.#hearProgress(method, params);
    (this.#clientOf(about) ?? this.#terms.owner)?.notify(method, withoutReservedMeta(params));
  }

  #hearProgress(method: string, params: Json): void {
    const token = params.progressToken as Id;
    this.#clients.get(token)?.notify(method, params);
    this.#ignored.heardOf(token);
  }

  /** What has changed is known here before anybody is told of it. */
  async hearChange(method: string, params: Json = {}): Promise<void> {
    for (const name of listsIn(method)) {
      try {
        const ask = (asked: string, more: Json) => this.request(asked, more);
        const mayFail = () => name === "resourceTemplates";
        const lists = await readLists(this.hello.capabilities, ask, { wanted: [name], mayFail });
        this.refusedLists.delete(name);
        if (lists.unread === undefined) this.lists = withRead(this.lists, name, lists[name]);
      } catch (error) {
        this.#terms.log.debug(`${name} could not be read: ${messageOf(error)}`);
      }
    }
    const [changed] = listsIn(method);
    if (changed !== undefined) this.onLists?.(changed, params);
    this.#audience.tell(method, params);
  }

  #leaveWhenIdle(): void {
    if (this.#isLeaving && this.isIdle) this.close();
  }

  #finish(why: ConnectionError): void {
    if (this.#why !== undefined) return;
    this.#why = why;
    this.#inFlight.failAll(why);
    this.#asks.takeAllBack();
    this.#terms.onGone?.();
    this.onClose?.(why);
  }
}
