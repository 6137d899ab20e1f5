import type { Clock } from "../clock.ts";
import type { ProgressUpdate } from "./progress.ts";

export interface TokenFacts {
  /** The client's own; unique among the live calls of its connection. */
  readonly token: string | number;
  /** Whose token it is: two clients may choose the same one. */
  readonly connection: object;
  readonly tool: string;
  /** True while somebody works on the call. Asked by a timer: must not throw. */
  readonly isAlive: () => boolean;
}

/** A live call and how far it is. */
export interface TokenView {
  readonly token: string | number;
  readonly tool: string;
  readonly startedAt: number;
  /** When it last said something; at first, when it started. */
  readonly updatedAt: number;
  readonly value: number | undefined;
  readonly total: number | undefined;
  /** 0–100, when the end is known. */
  readonly percentage: number | undefined;
  readonly message: string | undefined;
}

/** A call's hold on its token. */
export interface TrackedToken {
  update(update: ProgressUpdate): void;
  /** The call has ended. Doing so twice is as good as once. */
  drop(): void;
}

const sweepMs = 5_000;
/** A token nobody works for is kept this long: its task may be taken up again. */
const graceMs = 30_000;

/** What a call that repeats a live token gets: it runs, and the token goes on speaking for the first. */
const inert: TrackedToken = { update() {}, drop() {} };

/**
 * The live progress tokens of this process. A token goes when its call ends, when its client is gone, or when nobody
 * has worked on its call for half a minute; a silent call that lives keeps it.
 */
export class ProgressTokens {
  readonly #clock: Clock;
  readonly #byConnection = new Map<object, Map<string | number, Tracked>>();
  readonly #watched = new WeakSet<object>();
  #cancelSweep: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Remembers a call by its token. */
  track(facts: TokenFacts): TrackedToken {
    const { connection, token } = facts;
    const tokens = this.#byConnection.get(connection) ?? new Map<string | number, Tracked>();
    // A token "MUST be unique across all active requests": the second of a pair is its client's mistake, but no reason
    // to fail the call. https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/progress
    if (tokens.has(token)) return inert;
    const tracked = new Tracked(facts, this.#clock, this.#drop);
    tokens.set(token, tracked);
    this.#byConnection.set(connection, tokens);
    this.#cancelSweep ??= this.#clock.after(sweepMs, () => this.#sweep());
    return tracked;
  }

  get(connection: object, token: string | number): TokenView | undefined {
    return this.#byConnection.get(connection)?.get(token)?.view();
  }

  /** Every live token, connection by connection, oldest first. */
  list(): readonly TokenView[] {
    return [...this.#byConnection.values()].flatMap((tokens) => [...tokens.values()].map((tracked) => tracked.view()));
  }

  /** Sees to it that a connection's tokens go with its client. */
  dropWhenClosed(connection: object, closed: AbortSignal): void {
    if (this.#watched.has(connection)) return;
    this.#watched.add(connection);
    closed.addEventListener("abort", () => this.dropConnection(connection), { once: true });
  }

  /** Forgets the tokens of a client that is gone. */
  dropConnection(connection: object): void {
    this.#byConnection.delete(connection);
    this.#stopWhenEmpty();
  }

  /**
   * Forgets this one; a later call that has its token by now keeps it. One function for all: a token must not cost one
   * of its own.
   */
  readonly #drop = (tracked: Tracked): void => {
    const tokens = this.#byConnection.get(tracked.connection);
    if (tokens?.get(tracked.token) !== tracked) return;
    tokens.delete(tracked.token);
    if (tokens.size === 0) this.#byConnection.delete(tracked.connection);
    this.#stopWhenEmpty();
  };

  #sweep(): void {
    this.#cancelSweep = this.#clock.after(sweepMs, () => this.#sweep());
    const now = this.#clock.monotonic();
    for (const tokens of this.#byConnection.values()) {
      for (const tracked of tokens.values()) if (tracked.isForsaken(now)) tracked.drop();
    }
  }

  #stopWhenEmpty(): void {
    if (this.#byConnection.size > 0) return;
    this.#cancelSweep?.();
    this.#cancelSweep = undefined;
  }
}

/**
 * One live token, kept small: there may be thousands. Of an update it keeps the numbers and the words, not the author's
 * context.
 */
class Tracked implements TrackedToken {
  readonly token: string | number;
  readonly connection: object;
  readonly #tool: string;
  readonly #isAlive: () => boolean;
  readonly #clock: Clock;
  readonly #drop: (tracked: Tracked) => void;
  readonly #startedAt: number;
  #updatedAt: number;
  #value: number | undefined;
  #total: number | undefined;
  #percentage: number | undefined;
  #message: string | undefined;
  /** Since when nobody works on it, on the clock's monotonic scale. */
  #forsakenAt: number | undefined;

  constructor(facts: TokenFacts, clock: Clock, drop: (tracked: Tracked) => void) {
    this.token = facts.token;
    this.connection = facts.connection;
    this.#tool = facts.tool;
    this.#isAlive = facts.isAlive;
    this.#clock = clock;
    this.#drop = drop;
    this.#startedAt = clock.now();
    this.#updatedAt = this.#startedAt;
  }

  update({ value, total, percentage, message }: ProgressUpdate): void {
    this.#value = value;
    this.#total = total;
    this.#percentage = percentage;
    this.#message = message;
    this.#updatedAt = this.#clock.now();
  }

  drop(): void {
    this.#drop(this);
  }

  view(): TokenView {
    return {
      token: this.token,
      tool: this.#tool,
      startedAt: this.#startedAt,
      updatedAt: this.#updatedAt,
      value: this.#value,
      total: this.#total,
      percentage: this.#percentage,
      message: this.#message,
    };
  }

  /** True when nobody has worked on it for half a minute. */
  isForsaken(now: number): boolean {
    if (this.#isAlive()) this.#forsakenAt = undefined;
    else this.#forsakenAt ??= now;
    return this.#forsakenAt !== undefined && now - this.#forsakenAt >= graceMs;
  }
}
