/** That this process is about to end: whoever is kept waiting here is answered then. */
export class Leaving {
  readonly #begun = new AbortController();
  readonly #listeners = new Set<() => void>();

  /** Aborted as soon as that is so. */
  get signal(): AbortSignal {
    return this.#begun.signal;
  }

  /**
   * Calls back then, unless it was so before. An event target looks through all its listeners for each that comes;
   * there may be thousands.
   */
  onBegin(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** For good. */
  begin(): void {
    this.#begun.abort();
    const listeners = [...this.#listeners];
    this.#listeners.clear();
    for (const listener of listeners) listener();
  }
}
