import { randomUUID } from "node:crypto";
import type { Clock } from "../../clock.ts";
import type { Listeners } from "../listeners.ts";
import type { Database } from "./database.ts";
import { Listener } from "./listener.ts";
import { fromPayload, Notices } from "./notices.ts";

/** Watched tasks are looked at this often, for what nobody could tell of any more … */
const idleLookMs = 1_000;
/** … and this often while someone waits and nothing can be heard. */
const deafLookMs = 250;
/** Watched tasks whose versions are read in one statement. */
const looksAtOnce = 500;

/** Tells other nodes of what is written here, and listeners here of what other nodes write. */
export class ChangesElsewhere {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #listeners: Listeners;
  readonly #node = randomUUID();
  readonly #notices: Notices;
  readonly #listener: Listener;
  #waiting = 0;
  #cancelLook: (() => void) | undefined;
  #looking: Promise<void> | undefined;
  #isStopped = false;

  constructor(database: Database, clock: Clock, listeners: Listeners) {
    this.#database = database;
    this.#clock = clock;
    this.#listeners = listeners;
    const channel = `meanwhile_${database.address.schema}`;
    this.#notices = new Notices(this.#node, clock, (payload) => database.query("notify", { channel, payload }));
    this.#listener = new Listener({
      access: database.address.access,
      channel,
      clock,
      onNotice: (payload) => this.#hear(payload),
      onUp: () => this.#tellAll(),
    });
  }

  /** Hears what other nodes say from now on, if that can be. */
  async listen(): Promise<void> {
    await this.#listener.start();
  }

  /** Somebody here listens from now on. */
  watch(): void {
    if (this.#isStopped) return;
    void this.#listener.start();
    if (this.#cancelLook === undefined) this.#schedule();
  }

  watchClosely(isWaiting: boolean): void {
    this.#waiting += isWaiting ? 1 : -1;
    if (isWaiting && this.#waiting === 1 && !this.#listener.isUp) this.#schedule();
  }

  /** Something was written here. */
  tell(taskId: string, isWork: boolean): void {
    if (!this.#isStopped) this.#notices.add(taskId, isWork);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancelLook?.();
    await this.#notices.flush();
    await this.#looking;
    await this.#listener.stop();
  }

  #hear(payload: string): void {
    const notice = fromPayload(payload);
    if (notice === undefined || notice.node === this.#node || this.#isStopped) return;
    if (notice.taskIds === undefined) this.#tellAll();
    else for (const [at, taskId] of notice.taskIds.entries()) this.#listeners.tell(taskId, notice.isWork && at === 0);
  }

  /** Anything may have been missed. */
  #tellAll(): void {
    this.#listeners.tellElsewhere();
    this.#look();
  }

  #schedule(): void {
    this.#cancelLook?.();
    if (this.#isStopped) return;
    const isDeaf = !this.#listener.isUp;
    this.#cancelLook = this.#clock.after(isDeaf && this.#waiting > 0 ? deafLookMs : idleLookMs, () => {
      this.#listener.check();
      if (!this.#listener.isUp) this.#listeners.tellElsewhere();
      this.#look();
      if (this.#listeners.isEmpty) this.#cancelLook = undefined;
      else this.#schedule();
    });
  }

  /** One look at a time; must not throw, since timers call it. */
  #look(): void {
    if (this.#listeners.watched.length > 0)
      this.#looking ??= this.#lookAtWatched(this.#listeners.watched)
        .catch(() => undefined)
        .finally(() => (this.#looking = undefined));
  }

  async #lookAtWatched(taskIds: string[]): Promise<void> {
    while (taskIds.length > 0 && !this.#isStopped) {
      const some = taskIds.splice(0, looksAtOnce);
      const rows = await this.#database.query<{ task_id: string; version: number }>("versions", { taskIds: some });
      this.#listeners.tellChanged(some, new Map(rows.map(({ task_id, version }) => [task_id, version])));
    }
  }
}
