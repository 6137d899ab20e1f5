import { CommandError } from "../errors.ts";

/**
 * Far more than any host's settings, and far less than what exhausts the stack of whoever reads them by calling itself.
 */
const maxDepth = 200;

/**
 * Counts what is open while a text is read from left to right; throws a sentence when it nests deeper than settings
 * ever do.
 */
export class Nesting {
  readonly #open: number[] = [];
  #outer = 0;
  #inner = 0;

  enter(): void {
    this.#open.push(this.#inner);
    this.#outer += this.#inner + 1;
    this.#inner = 0;
    this.#check();
  }

  leave(): void {
    const inner = this.#open.pop();
    if (inner === undefined) return;
    this.#outer -= inner + 1;
    this.#inner = inner;
  }

  /** One more part of a key such as a.b.c. */
  step(): void {
    this.#inner++;
    this.#check();
  }

  /** The key has ended with its value. */
  endKey(): void {
    this.#inner = 0;
  }

  #check(): void {
    if (this.#outer + this.#inner > maxDepth)
      throw new CommandError(`it nests deeper than ${maxDepth} levels, which no settings of a host do`);
  }
}
