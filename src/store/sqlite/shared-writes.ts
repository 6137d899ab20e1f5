import type Database from "better-sqlite3";
import { nextTurn } from "../../clock.ts";
import { isBusy } from "./connection.ts";
import { transactOn } from "./transact.ts";

interface Job {
  /** It must survive a power cut. */
  readonly isFull: boolean;
  readonly act: () => unknown;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

interface WriteTerms {
  /** The connection, ready to write to. Throws where that may not be; called again for every try. */
  readonly ready: (isFull: boolean) => Database.Database;
  /** Tries until somebody else no longer writes; throws what an operator can act on. */
  readonly patiently: <T>(act: () => T) => Promise<T>;
}

type Verdict = { readonly value: unknown } | { readonly error: unknown };

/**
 * What is to be written in one turn of the event loop is one transaction, with one lock and one wait for the disk.
 * Nobody is answered before it is over. One that fails is undone alone; where all are undone with it, each is tried by
 * itself.
 */
export class SharedWrites {
  readonly #terms: WriteTerms;
  #jobs: Job[] = [];
  #writing: Promise<void> | undefined;

  constructor(terms: WriteTerms) {
    this.#terms = terms;
  }

  /** What has been asked for, and is not written yet; undefined when that is nothing. */
  get pending(): Promise<void> | undefined {
    return this.#writing;
  }

  write<T>(isFull: boolean, act: () => T): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    this.#jobs.push({ isFull, act, resolve: resolve as (value: unknown) => void, reject });
    this.#writing ??= nextTurn().then(() => this.#writeAll());
    return promise;
  }

  async #writeAll(): Promise<void> {
    while (this.#jobs.length > 0) {
      const jobs = this.#jobs;
      this.#jobs = [];
      if (jobs.length > 1) await this.#together(jobs);
      else for (const job of jobs) await this.#alone(job);
    }
    this.#writing = undefined;
  }

  async #alone({ isFull, act, resolve, reject }: Job): Promise<void> {
    await this.#terms
      .patiently(() => {
        this.#terms.ready(isFull);
        return act();
      })
      .then(resolve, reject);
  }

  async #together(jobs: readonly Job[]): Promise<void> {
    const isFull = jobs.some((job) => job.isFull);
    let verdicts: readonly Verdict[];
    try {
      verdicts = await this.#terms.patiently(() => writeTogether(this.#terms.ready(isFull), jobs));
    } catch (error) {
      // Nothing of it was done. It may be the fault of one, but a lock has kept all of them waiting long enough.
      if (error instanceof Error && isBusy(error.cause)) for (const { reject } of jobs) reject(error);
      else for (const job of jobs) await this.#alone(job);
      return;
    }
    for (const [at, verdict] of verdicts.entries())
      if ("error" in verdict) jobs[at]?.reject(verdict.error);
      else jobs[at]?.resolve(verdict.value);
  }
}

/** All of them in one transaction; throws when nothing was done. */
function writeTogether(db: Database.Database, jobs: readonly Job[]): Verdict[] {
  const transact = transactOn(db);
  const tryOne = ({ act }: Job): Verdict => {
    try {
      return { value: transact(act) };
    } catch (error) {
      // A full disk, and other things, undo all.
      if (!db.inTransaction) throw error;
      return { error };
    }
  };
  return transact.immediate(() => jobs.map(tryOne)) as Verdict[];
}
