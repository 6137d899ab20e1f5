/** Lines for a screen that a question may have for itself: what is to be said meanwhile is said after it. */
export class HeldLines {
  readonly #say: (line: string) => void;
  #held: string[] | undefined;

  constructor(say: (line: string) => void) {
    this.#say = say;
  }

  line(text: string): void {
    if (this.#held === undefined) this.#say(text);
    else this.#held.push(text);
  }

  async holdDuring<T>(ask: () => Promise<T>): Promise<T> {
    this.#held ??= [];
    try {
      return await ask();
    } finally {
      this.release();
    }
  }

  /** Says what was held back, whether there is an answer or not. */
  release(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const text of held) this.#say(text);
  }
}
