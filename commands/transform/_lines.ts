import { BeyondLimit, bytesOf, type Limits } from "../_pack/limits.ts";

/** So many lines are made one text: a million small ones would take several times their size. */
const linesAtOnce = 10_000;

/**
 * Puts a text together line by line. Engines that repeat a name on every line could make gigabytes of a small file:
 * there is a limit.
 */
export class Lines {
  readonly #limits: Limits;
  readonly #texts: string[] = [];
  #lines: string[] = [];
  #characters = 0;
  count = 0;

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  add(line: string): void {
    this.#characters += line.length + 1;
    if (this.#characters > bytesOf(this.#limits.textMb))
      throw new BeyondLimit(`its text has more than ${this.#limits.textMb} MB`, "textMb");
    this.count += 1;
    if (this.#lines.push(line) === linesAtOnce) this.#flush();
  }

  toText(): string {
    this.#flush();
    return this.#texts.join("");
  }

  #flush(): void {
    if (this.#lines.length > 0) this.#texts.push(`${this.#lines.join("\n")}\n`);
    this.#lines = [];
  }
}
