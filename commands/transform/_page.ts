/** So many pieces are made one: millions of single letters would take many times their size. */
const piecesAtOnce = 10_000;

/** Puts a page together from words and blocks: spaces run together, blocks stand on lines of their own. */
export class Page {
  readonly #lines: string[] = [];
  /**
   * The line that is being written. In pieces, because a page may be one line of many megabytes; its beginning first.
   */
  #pieces: string[] = [];
  #beginning: string[] = [];
  #endsInSpace = true;
  /** Inside, spaces and line ends count. */
  isVerbatim = false;

  add(words: string): void {
    const joined = this.isVerbatim ? words : words.replaceAll(/[\s\u00a0]+/g, " ");
    const fitting = this.#endsInSpace && !this.isVerbatim ? joined.trimStart() : joined;
    if (fitting === "") return;
    if (this.#pieces.push(fitting) === piecesAtOnce) this.#joinPieces();
    this.#endsInSpace = fitting.endsWith(" ");
  }

  /** Begins a new line, with something in front of it. */
  breakLine(start = ""): void {
    this.#joinPieces();
    const line = this.#beginning.join("");
    this.#beginning = [];
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

  #joinPieces(): void {
    this.#beginning.push(this.#pieces.join(""));
    this.#pieces = [];
  }

  toText(): string {
    this.breakLine();
    return `${this.#lines.join("\n").trim()}\n`;
  }
}
