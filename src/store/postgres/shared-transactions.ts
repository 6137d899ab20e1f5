import type { Query } from "./database.ts";

/** One write, and where it stands among those it shares a transaction with. */
export interface SharedWrite<T> {
  /** Locks are taken in the order of these, on every node. */
  readonly order: string;
  /** How much is sent; a large one keeps nobody waiting but itself. */
  readonly bytes: number;
  /** One statement; whoever needs another one is started again, alone. */
  readonly act: (query: Query, isAgain: boolean) => Promise<T>;
}

interface Terms {
  /** One transaction on one connection, sent as a whole; false when nothing of it was done. */
  readonly transact: (acts: readonly ((query: Query) => Promise<unknown>)[]) => Promise<boolean>;
  /** Again and again, while the database is away. `isAgain` when it may have been done. */
  readonly alone: <T>(act: SharedWrite<T>["act"], isAgain: boolean) => Promise<T>;
  /** True when nobody knows whether what failed was done. */
  readonly isLost: (error: unknown) => boolean;
}

interface Job extends SharedWrite<unknown> {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

const maxBytes = 16 * 1024;
const maxJobs = 64;
/** While so many transactions are under way, what comes waits and goes together. */
const lanes = 2;

/**
 * Writes that come while others are under way share a transaction: one lock for a caller, one wait for the disk. Nobody
 * is answered before it is over. Where it fails, nothing of it was done, and each is tried by itself.
 */
export class SharedTransactions {
  readonly #terms: Terms;
  #jobs: Job[] = [];
  #underWay = 0;

  constructor(terms: Terms) {
    this.#terms = terms;
  }

  write<T>(write: SharedWrite<T>): Promise<T> {
    if (write.bytes > maxBytes) return this.#terms.alone(write.act, false);
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    this.#jobs.push({ ...write, resolve: resolve as (value: unknown) => void, reject });
    // Those of one turn go together.
    if (this.#jobs.length === 1) queueMicrotask(() => this.#go());
    return promise;
  }

  #go(): void {
    if (this.#underWay === lanes || this.#jobs.length === 0) return;
    const jobs = this.#jobs.splice(0, maxJobs).toSorted((a, b) => (a.order < b.order ? -1 : a.order > b.order ? 1 : 0));
    this.#underWay += 1;
    void this.#together(jobs).then(() => {
      this.#underWay -= 1;
      this.#go();
    });
    this.#go();
  }

  /** Never rejects; what has to be done by itself is not waited for. */
  async #together(jobs: readonly Job[]): Promise<void> {
    const settled: { readonly job: Job; readonly value: unknown }[] = [];
    const acts = jobs.map((job) => async (query: Query) => {
      settled.push({ job, value: await job.act(query, false) });
    });
    let isAgain = false;
    const isDone = await this.#terms.transact(acts).catch((error: unknown) => {
      isAgain = this.#terms.isLost(error);
      return false;
    });
    const answered = new Set<Job>();
    if (isDone)
      for (const { job, value } of settled) {
        answered.add(job);
        job.resolve(value);
      }
    for (const job of jobs)
      if (!answered.has(job)) void this.#terms.alone(job.act, isAgain).then(job.resolve, job.reject);
  }
}
