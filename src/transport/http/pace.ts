/** A message of this size counts as one more. */
const unitBytes = 64 * 1024;

/** Lets a few messages begin in each turn of the event loop, so that nobody waits behind all that somebody sends. */
export class Pace {
  readonly #perTurn: number;
  readonly #onIdle: () => void;
  readonly #waiting: { readonly units: number; readonly begin: () => void }[] = [];
  #left: number;
  #isCounting = false;

  constructor(perTurn: number, onIdle: () => void) {
    this.#perTurn = perTurn;
    this.#left = perTurn;
    this.#onIdle = onIdle;
  }

  /** Resolves when it is this message's turn; undefined when that is now. */
  enter(bytes: number): Promise<void> | undefined {
    const units = 1 + bytes / unitBytes;
    this.#count();
    if (this.#waiting.length === 0 && this.#left > 0) {
      this.#left -= units;
      return undefined;
    }
    return new Promise((begin) => this.#waiting.push({ units, begin }));
  }

  #count(): void {
    if (this.#isCounting) return;
    this.#isCounting = true;
    setImmediate(this.#nextTurn);
  }

  readonly #nextTurn = (): void => {
    this.#isCounting = false;
    this.#left = this.#perTurn;
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      this.#left -= next.units;
      next.begin();
      if (this.#left <= 0) break;
    }
    if (this.#left === this.#perTurn) this.#onIdle();
    else this.#count();
  };
}
