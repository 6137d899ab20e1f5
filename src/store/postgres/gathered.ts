import { nextTurn } from "../../clock.ts";

interface Terms<Job, Result> {
  /** One statement for all; their results in order. Where it fails, nothing of it was done. */
  readonly together: (jobs: readonly Job[]) => Promise<readonly Result[]>;
  /** One by itself, again and again while the database is away, from that moment on. `isAgain` when it may have been done. */
  readonly alone: (job: Job, isAgain: boolean, since: number) => Promise<Result>;
  /** What time it is, for measuring. */
  readonly monotonic: () => number;
  /** True when nobody knows whether what failed was done. */
  readonly isLost: (error: unknown) => boolean;
  /** While so many statements are under way, what comes waits and goes together. */
  readonly lanes: number;
}

interface Waiting<Job, Result> {
  readonly job: Job;
  readonly since: number;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

/** What is larger keeps nobody waiting but itself. */
const maxBytes = 16 * 1024;
const maxJobs = 64;

/**
 * What is asked for while the same is under way goes in one statement: one way to the server and back, one wait for the
 * disk. Nobody is answered before it is done. Where it fails, each is tried by itself.
 */
export class Gathered<Job, Result> {
  readonly #terms: Terms<Job, Result>;
  #waiting: Waiting<Job, Result>[] = [];
  #underWay = 0;

  constructor(terms: Terms<Job, Result>) {
    this.#terms = terms;
  }

  /** `bytes` is how much of it is sent. */
  add(job: Job, bytes = 0): Promise<Result> {
    const since = this.#terms.monotonic();
    if (bytes > maxBytes) return this.#terms.alone(job, false, since);
    const { promise, resolve, reject } = Promise.withResolvers<Result>();
    this.#waiting.push({ job, since, resolve, reject });
    // Those of one turn go together.
    if (this.#waiting.length === 1) void nextTurn().then(() => this.#go());
    return promise;
  }

  #go(): void {
    if (this.#underWay === this.#terms.lanes || this.#waiting.length === 0) return;
    const some = this.#waiting.splice(0, maxJobs);
    this.#underWay += 1;
    void this.#together(some).then(() => {
      this.#underWay -= 1;
      this.#go();
    });
    this.#go();
  }

  /** Never rejects; what has to be done by itself is not waited for. */
  async #together(some: readonly Waiting<Job, Result>[]): Promise<void> {
    try {
      const results = await this.#terms.together(some.map(({ job }) => job));
      for (const [at, { resolve }] of some.entries()) resolve(results[at] as Result);
    } catch (error) {
      const isAgain = this.#terms.isLost(error);
      this.#alone(some, isAgain);
      // Whoever waits for a server that is silent must not wait for others first.
      if (isAgain) this.#alone(this.#waiting.splice(0), false);
    }
  }

  #alone(some: readonly Waiting<Job, Result>[], isAgain: boolean): void {
    for (const { job, since, resolve, reject } of some)
      void this.#terms.alone(job, isAgain, since).then(resolve, reject);
  }
}
