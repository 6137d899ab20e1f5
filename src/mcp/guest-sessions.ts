import { sleep, systemClock } from "../clock.ts";
import type { Caller } from "../command/caller.ts";
import type { Json } from "../wire/json.ts";
import { askOutside, type GuestClient, mayGiveRoots, refuseUndeclared, whoAsks } from "./guest-client.ts";
import type { AskLimits, ClientConnection } from "./request.ts";
import { nextRoots, type SharedRoots } from "./shared-roots.ts";

/** What a server outside of any request can reach: a session, or a client whose call runs. */
export type ReachedClient = Pick<GuestClient, "who" | "caller" | "notify" | "ask">;

interface SessionOptions {
  readonly connection: ClientConnection;
  /** The ID of the session. */
  readonly session: string;
  /** False for a log line below the level that the client has set. */
  readonly hears: (params: Json) => boolean;
}

/** A client session before 2026-07-28 that shares a server with other sessions. */
export class SharingSession implements ReachedClient {
  readonly #options: SessionOptions;

  constructor(options: SessionOptions) {
    this.#options = options;
  }

  get who(): string {
    const { connection, session } = this.#options;
    return whoAsks(connection.caller, session);
  }

  get caller(): Caller {
    return this.#options.connection.caller;
  }

  /** False while the client has no stream open on which it can be asked. */
  get canPush(): boolean {
    return this.#options.connection.canPush;
  }

  /** True where the server may work in the roots of this client. */
  get givesRoots(): boolean {
    const { client } = this.#options.connection;
    return client.capabilities.roots !== undefined && mayGiveRoots(this);
  }

  notify(method: string, params: Json): void {
    const { connection, hears } = this.#options;
    if (method !== "notifications/message" || hears(params)) connection.notify(method, params);
  }

  async ask(method: string, params: Json, options: AskLimits): Promise<unknown> {
    const { connection } = this.#options;
    refuseUndeclared(method, connection);
    return await askOutside(connection, method, params, options);
  }
}

interface WaitingQuestion {
  readonly method: string;
  readonly resolve: (client: ReachedClient) => void;
  readonly reject: (error: Error) => void;
}

/** How long a server may take to ask for roots that it is told of, and to use those that it has got. */
const rootsMs = 50;

/**
 * The sessions that share a server, from `notifications/initialized` to their end. While there is exactly one, it gets
 * what the server asks and says outside of any request.
 */
export class GuestSessions {
  readonly #sessions = new Set<SharingSession>();
  /** Questions that the server asked before there was any client. */
  readonly #waiting = new Set<WaitingQuestion>();
  readonly #onRootsChanged: () => void;
  #roots: SharedRoots<ReachedClient> = { state: "unused" };
  #hasHadClient = false;

  /** `onRootsChanged`: the server is told that the roots it has may be those of another client. */
  constructor(onRootsChanged: () => void) {
    this.#onRootsChanged = onRootsChanged;
  }

  /** The returned function removes the session. */
  add(session: SharingSession): () => void {
    this.#hasHadClient = true;
    this.#sessions.add(session);
    this.#changed();
    return () => {
      if (this.#sessions.delete(session)) this.#changed();
    };
  }

  /**
   * The only client there is: of the sessions, and of the `working` clients whose calls run. Undefined for none, for
   * several, and where it is not `who`.
   */
  only(who: string | undefined, working: readonly GuestClient[]): ReachedClient | undefined {
    const [session, another] = this.#sessions;
    const last = working.at(-1);
    const client = session ?? last;
    if (client === undefined || another !== undefined) return undefined;
    if (who !== undefined && who !== client.who) return undefined;
    if (working.some((one) => one.who !== client.who)) return undefined;
    return session?.canPush === false ? (last ?? session) : client;
  }

  isOnly(session: SharingSession): boolean {
    return this.#sessions.size === 1 && this.#sessions.has(session);
  }

  /**
   * For a question while there is no client. Resolves with the first client that can be asked; rejects when the question
   * is withdrawn. Undefined once there has been a client: some servers do nothing else until they have an answer.
   */
  next(method: string, withdrawn: AbortSignal): Promise<ReachedClient> | undefined {
    if (method === "roots/list") this.#roots = nextRoots(this.#roots, { event: "asked without client" });
    if (this.#hasHadClient && this.#roots.state !== "asking") return undefined;
    return new Promise((resolve, reject) => {
      const question = { method, resolve, reject };
      this.#waiting.add(question);
      const onAbort = () => {
        this.#waiting.delete(question);
        reject(withdrawn.reason);
      };
      withdrawn.addEventListener("abort", onAbort, { once: true });
    });
  }

  /** The request of a client begins. What waits for the first session is refused, because this client has none. */
  noteRequest(error: () => Error): void {
    this.#hasHadClient = true;
    if (this.#waiting.size === 0) return;
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const { reject } of waiting) reject(error());
  }

  /**
   * Lets a server that uses roots ask for those of a client of 2026-07-28, before the first call of that client begins:
   * such a client can be asked only while a call of its own runs. Undefined where there is nothing to wait for.
   */
  giveRoots(client: ReachedClient): Promise<void> | undefined {
    if (this.#sessions.size > 0) return undefined;
    const { promise: ended, resolve, reject } = Promise.withResolvers<void>();
    const before = this.#roots;
    this.#roots = nextRoots(before, { event: "call", client, ended });
    if (this.#roots !== before)
      this.#askForRoots(client)
        .finally(() => (this.#roots = nextRoots(this.#roots, { event: "asking ended", client })))
        .then(resolve, reject);
    return this.#roots.state === "asking" ? this.#roots.ended : undefined;
  }

  async #askForRoots(client: ReachedClient): Promise<void> {
    if (!this.#asksForRoots) {
      // Its own question was refused, or withdrawn after some time, when there was no client.
      this.#onRootsChanged();
      await sleep(systemClock, rootsMs);
    }
    const question = [...this.#waiting].find(({ method }) => method === "roots/list");
    if (question === undefined) return;
    this.#waiting.delete(question);
    const asked = Promise.withResolvers<void>();
    question.resolve({
      who: client.who,
      caller: client.caller,
      notify: (method, params) => client.notify(method, params),
      ask: (...given) => client.ask(...given).finally(asked.resolve),
    });
    await asked.promise;
    await sleep(systemClock, rootsMs);
  }

  get #asksForRoots(): boolean {
    return [...this.#waiting].some(({ method }) => method === "roots/list");
  }

  #changed(): void {
    const [session] = this.#sessions;
    if (session === undefined || !this.isOnly(session)) return;
    const isAsked = this.#asksForRoots;
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const { resolve } of waiting) resolve(session);
    if (!session.givesRoots) return;
    const before = this.#roots;
    this.#roots = nextRoots(before, { event: "only session", client: session });
    if (this.#roots !== before && !isAsked) this.#onRootsChanged();
  }
}
