import { type Clock, sleep, within } from "../clock.ts";
import { isStoreError } from "../errors.ts";
import type { Logger } from "../log.ts";
import type { KeyStore, StoredKey } from "./key-store.ts";

/** A list as old as this is not used, even where the store cannot be reached: a revoked key is refused within 5 s. */
const maxAgeMs = 5_000;
/** A caller waits this long for the store. */
const maxWaitMs = 3_000;
/** The time between a read that failed and the next one. */
const retryMs = 1_000;

export interface RecentKeysOptions {
  readonly openKeys: () => Promise<KeyStore>;
  readonly project: string;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The keys of a project as the store had them at most 5 s ago. */
export interface RecentList {
  /** The store's time now. */
  readonly now: number;
  readonly byId: ReadonlyMap<string, StoredKey>;
}

/** Keeps the keys of a project in memory. One read at a time, whatever the number of requests. */
export class RecentKeys {
  readonly #options: RecentKeysOptions;
  /** `startedAt`, of the steady clock, is when the read began: the list may be as old as that. */
  #list: { readonly startedAt: number; readonly readAt: number; readonly byId: RecentList["byId"] } | undefined;
  #read: { readonly startedAt: number; readonly done: Promise<void> } | undefined;
  #failedAt = Number.NEGATIVE_INFINITY;

  constructor(options: RecentKeysOptions) {
    this.#options = options;
  }

  /** The list, if it is younger than this. */
  youngerThan(ageMs: number): RecentList | undefined {
    const list = this.#list;
    if (list === undefined) return undefined;
    const age = this.#options.clock.monotonic() - list.startedAt;
    return age < ageMs ? { now: list.readAt + age, byId: list.byId } : undefined;
  }

  /** Reads the list again. Undefined where the store cannot be reached and the list before is too old. */
  async refresh(): Promise<RecentList | undefined> {
    const { clock } = this.#options;
    const now = clock.monotonic();
    if (this.#read !== undefined || now - this.#failedAt >= retryMs) {
      this.#read ??= { startedAt: now, done: this.#start(now) };
      const leftMs = this.#read.startedAt + maxWaitMs - now;
      if (leftMs > 0) await within(clock, leftMs, this.#read.done);
    }
    return this.youngerThan(maxAgeMs);
  }

  /**
   * A list that was read after this call, so that it has a key that was added just before. Waits until the present list
   * is as old as `gapMs`: any number of calls costs one read in that time. Undefined as for `refresh`.
   */
  async readAnew(gapMs: number): Promise<RecentList | undefined> {
    const { clock } = this.#options;
    const askedAt = clock.monotonic();
    const readyAt = (this.#list?.startedAt ?? Number.NEGATIVE_INFINITY) + gapMs;
    if (readyAt > askedAt) await sleep(clock, readyAt - askedAt);
    const isNewer = this.#list !== undefined && this.#list.startedAt > askedAt;
    return isNewer ? this.youngerThan(maxAgeMs) : await this.refresh();
  }

  /** Never rejects. */
  async #start(startedAt: number): Promise<void> {
    const { openKeys, project, clock, log } = this.#options;
    try {
      const { now, keys } = await (await openKeys()).list(project);
      this.#list = { startedAt, readAt: now, byId: new Map(keys.map((key) => [key.id, key])) };
    } catch (error) {
      this.#failedAt = clock.monotonic();
      // A store logs its own trouble.
      if (!isStoreError(error)) log.error("The API keys could not be read", { error });
    } finally {
      this.#read = undefined;
    }
  }
}
