import { CommandError } from "meanwhile";

/** Engines that repeat a name on every line could make gigabytes of a small file; a longer text than this is refused. */
const maxCharacters = 128 * 1024 * 1024;

/** Puts a text together line by line. */
export class Lines {
  readonly #lines: string[] = [];
  #characters = 0;

  get count(): number {
    return this.#lines.length;
  }

  add(line: string): void {
    this.#characters += line.length + 1;
    if (this.#characters > maxCharacters) throw new CommandError(`its text would have more than ${maxCharacters} characters`);
    this.#lines.push(`${line}\n`);
  }

  toText(): string {
    return this.#lines.join("");
  }
}
