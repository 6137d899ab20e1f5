/** Begins a few things in each turn of the event loop, so that many that are due at once keep nobody else waiting. */
export class Paced {
  readonly #perTurn: number;
  readonly #waiting = new Set<() => void>();
  #left: number;
  #isCounting = false;

  constructor(perTurn: number) {
    this.#perTurn = perTurn;
    this.#left = perTurn;
  }

  /**
   * Begins it now, or when those before it have begun; the returned function takes it back. What is begun must not
   * throw.
   */
  add(begin: () => void): () => void {
    this.#waiting.add(begin);
    this.#beginSome();
    return () => void this.#waiting.delete(begin);
  }

  #beginSome(): void {
    for (const begin of this.#waiting) {
      if (this.#left <= 0) break;
      this.#left -= 1;
      this.#waiting.delete(begin);
      begin();
    }
    if (this.#isCounting || this.#left === this.#perTurn) return;
    this.#isCounting = true;
    setImmediate(() => {
      this.#isCounting = false;
      this.#left = this.#perTurn;
      this.#beginSome();
    });
  }
}
