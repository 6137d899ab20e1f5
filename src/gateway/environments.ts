import { orAborted } from "../client/connection/or-aborted.ts";
import { type Clock, within } from "../clock.ts";
import { CommandError } from "../errors.ts";
import { environmentKey } from "../mcp/environment-key.ts";
import type { SessionEnvironment } from "../mcp/request.ts";

/** So many are remembered, those that were seen last. */
const maxKept = 100;
/** How long a task waits for a session like the one it was called in. */
const waitMs = 10 * 60 * 1000;

/**
 * The variables of sessions, by a mark that says nothing about them. They are in memory alone: what a task needs of them
 * after a crash, the session brings again.
 */
export class Environments {
  readonly #kept = new Map<string, SessionEnvironment>();
  readonly #waiting = new Map<string, PromiseWithResolvers<SessionEnvironment>>();
  readonly #own: SessionEnvironment;
  readonly #clock: Clock;

  constructor(own: SessionEnvironment, clock: Clock) {
    this.#own = own;
    this.#clock = clock;
  }

  remember(environment: SessionEnvironment): void {
    const mark = environmentKey(environment) ?? "";
    this.#kept.delete(mark);
    this.#kept.set(mark, environment);
    for (const oldest of [...this.#kept.keys()].slice(0, -maxKept)) this.#kept.delete(oldest);
    this.#waiting.get(mark)?.resolve(environment);
    this.#waiting.delete(mark);
  }

  /** Those that bear a mark; where no session here has had them, one is waited for. Undefined is this process's own. */
  async find(mark: string | undefined, signal: AbortSignal): Promise<SessionEnvironment | undefined> {
    if (mark === undefined || mark === environmentKey(this.#own)) return undefined;
    const kept = this.#kept.get(mark);
    if (kept !== undefined) return kept;
    const waiting = this.#waiting.get(mark) ?? Promise.withResolvers<SessionEnvironment>();
    this.#waiting.set(mark, waiting);
    return await within(this.#clock, waitMs, orAborted(waiting.promise, signal), () => {
      throw new CommandError(
        "Its upstream would have to be started with the variables of the session it was called in, and no such session has come back.",
      );
    });
  }
}
