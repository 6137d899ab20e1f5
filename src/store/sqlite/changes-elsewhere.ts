import type { Clock } from "../../clock.ts";
import type { Listeners } from "../listeners.ts";
import { fromTexts } from "./rows.ts";
import type { TaskFile } from "./task-file.ts";

/** Other processes' changes are looked for this often while someone waits, and this often otherwise. */
const closeWatchMs = 50;
const idleWatchMs = 1_000;
/** Watched tasks whose versions are read in one turn of the event loop. */
const looksATurn = 500;

/** Tells listeners of what other processes write to the file, for as long as there are listeners. */
export class ChangesElsewhere {
  readonly #file: TaskFile;
  readonly #clock: Clock;
  readonly #listeners: Listeners;
  #version: number | undefined;
  #waiting = 0;
  #cancelLook: (() => void) | undefined;

  constructor(file: TaskFile, clock: Clock, listeners: Listeners) {
    this.#file = file;
    this.#clock = clock;
    this.#listeners = listeners;
  }

  /** Somebody listens from now on. */
  watch(): void {
    if (this.#cancelLook === undefined) this.#schedule();
  }

  watchClosely(isWaiting: boolean): void {
    this.#waiting += isWaiting ? 1 : -1;
    if (isWaiting && this.#waiting === 1) this.#schedule();
  }

  stop(): void {
    this.#cancelLook?.();
  }

  #schedule(): void {
    this.#cancelLook?.();
    if (this.#file.isClosed) return;
    this.#cancelLook = this.#clock.after(this.#waiting > 0 ? closeWatchMs : idleWatchMs, () => {
      this.#look();
      if (this.#listeners.isEmpty) this.#cancelLook = undefined;
      else this.#schedule();
    });
  }

  #look(): void {
    if (!this.#file.isOpen) return;
    this.#version ??= this.#file.versionAtOpen;
    let version = this.#version;
    try {
      version = this.#file.readVersion();
    } catch {
      // Called by a timer, where an error would end the process. The next look, or the next read, meets the same
      // trouble.
    }
    if (version === this.#version) return;
    this.#version = version;
    this.#listeners.tellElsewhere();
    this.#lookAtWatched(this.#listeners.watched);
  }

  /**
   * Tells who listens to one task when it is that one, a few in each turn of the event loop. Must not throw: it is
   * called by timers.
   */
  #lookAtWatched(taskIds: string[]): void {
    if (this.#file.isClosed || taskIds.length === 0) return;
    const some = taskIds.splice(0, looksATurn);
    let rows: { task_id: string; version: number }[] = [];
    try {
      rows = this.#file.all("versions", { taskIds: fromTexts(some) });
    } catch {
      // Then all of these are told, and meet the trouble themselves.
    }
    this.#listeners.tellChanged(some, new Map(rows.map(({ task_id, version }) => [task_id, version])));
    if (taskIds.length > 0) setImmediate(() => this.#lookAtWatched(taskIds));
  }
}
