export type Id = string | number;

/** A request that was sent. */
export interface Sent<Answer> {
  readonly id: Id;
  /** What came for it, whatever it says. */
  readonly answer: Promise<Answer>;
  /** Nothing will come for it. */
  fail(why: unknown): void;
  /** Nobody waits for it any more. */
  forget(): void;
}

/** Requests that wait for their answers: each finds its own by its id. */
export class InFlight<Answer> {
  readonly #waiting = new Map<unknown, PromiseWithResolvers<Answer>>();
  #lastId: number;

  constructor(lastId = 0) {
    this.#lastId = lastId;
  }

  open(id: Id = ++this.#lastId): Sent<Answer> {
    const waiting = Promise.withResolvers<Answer>();
    this.#waiting.set(id, waiting);
    // Whoever waits is told; that nobody does is no error.
    waiting.promise.catch(() => undefined);
    const forget = () => void this.#waiting.delete(id);
    const fail = (why: unknown) => {
      forget();
      waiting.reject(why);
    };
    return { id, answer: waiting.promise, fail, forget };
  }

  /** False when nobody waits for it. */
  settle(id: unknown, answer: Answer): boolean {
    const waiting = this.#waiting.get(id);
    waiting?.resolve(answer);
    return this.#waiting.delete(id);
  }

  /** Nothing comes any more, for anybody. */
  failAll(why: unknown): void {
    for (const waiting of this.#waiting.values()) waiting.reject(why);
    this.#waiting.clear();
  }
}
