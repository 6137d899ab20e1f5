import type { Clock } from "../clock.ts";
import type { CatalogEntry } from "../command/catalog.ts";
import type { Task } from "./task.ts";

/** An editor's save or a checkout takes less: a command that stays away for longer is gone. */
const absenceMs = 60_000;
/** A file that could not be loaded is tried again after this long. */
const lookMs = 1_000;

/** What a task says of itself meanwhile. */
export function absentMessage(command: string): string {
  return `Waiting for the command ${command}, which is gone or cannot be loaded right now; given up after a minute.`;
}

/** Tasks of one worker whose command is not there: each waits for it, in the queue, for a minute at most. */
export class Absences {
  readonly #clock: Clock;
  readonly #find: (command: string) => CatalogEntry | undefined;
  readonly #waiting = new Map<string, { readonly command: string; readonly since: number; readonly lookAt: number }>();

  constructor(clock: Clock, find: (command: string) => CatalogEntry | undefined) {
    this.#clock = clock;
    this.#find = find;
  }

  /** Its command was not there; false when that has lasted too long. */
  mayWait({ taskId, command }: Task): boolean {
    const now = this.#clock.monotonic();
    const since = this.#waiting.get(taskId)?.since ?? now;
    const isOver = now - since >= absenceMs;
    if (isOver) this.#waiting.delete(taskId);
    else this.#waiting.set(taskId, { command, since, lookAt: now + lookMs });
    return !isOver;
  }

  /** It has run, or has ended: the next time is another absence. */
  forget(taskId: string): void {
    this.#waiting.delete(taskId);
  }

  /** Those that are of no use to claim right now. */
  held(): string[] {
    const now = this.#clock.monotonic();
    const held: string[] = [];
    for (const [taskId, { command, since, lookAt }] of this.#waiting) {
      // Cancelled, or run by somebody else.
      if (now - since >= 2 * absenceMs) this.#waiting.delete(taskId);
      else if (now < lookAt || (now - since < absenceMs && this.#find(command) === undefined)) held.push(taskId);
    }
    return held;
  }
}
