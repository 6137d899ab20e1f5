/** Puts a page together from words and blocks: spaces run together, blocks stand on lines of their own. */
export class Page {
  readonly #lines: string[] = [];
  /** The line that is being written. In pieces, because a page may be one line of many megabytes. */
  #pieces: string[] = [];
  #endsInSpace = true;
  /** Inside, spaces and line ends count. */
  isVerbatim = false;

  add(words: string): void {
    const joined = this.isVerbatim ? words : words.replaceAll(/[\s\u00a0]+/g, " ");
    const fitting = this.#endsInSpace && !this.isVerbatim ? joined.trimStart() : joined;
    if (fitting === "") return;
    this.#pieces.push(fitting);
    this.#endsInSpace = fitting.endsWith(" ");
  }

  /** Begins a new line, with something in front of it. */
  breakLine(start = ""): void {
    const line = this.#pieces.join("");
    if (line.trim() !== "") this.#lines.push(this.isVerbatim ? line : line.trimEnd());
    this.#pieces = start === "" ? [] : [start];
    this.#endsInSpace = true;
  }

  /** Begins a new paragraph. */
  breakBlock(start = ""): void {
    this.breakLine();
    if (this.#lines.length > 0 && this.#lines.at(-1) !== "") this.#lines.push("");
    this.breakLine(start);
  }

  toText(): string {
    this.breakLine();
    return `${this.#lines.join("\n").trim()}\n`;
  }
}
