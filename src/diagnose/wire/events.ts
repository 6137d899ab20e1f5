import { StringDecoder } from "node:string_decoder";

/** Cuts a stream of server-sent events into the data of each. What never ends is bounded by who reads the stream. */
export class EventReader {
  readonly #decoder = new StringDecoder("utf8");
  /** The parts of a line that has not ended: joined once, so that a line that comes byte by byte is not read over and over. */
  #parts: string[] = [];
  #data: string[] = [];
  #isAfterReturn = false;

  push(chunk: Buffer): string[] {
    const text = this.#decoder.write(chunk);
    const events: string[] = [];
    let start = 0;
    for (const { index } of text.matchAll(/[\r\n]/g)) {
      const isSecondHalf = text[index] === "\n" && index === start && (index === 0 ? this.#isAfterReturn : text[index - 1] === "\r");
      if (!isSecondHalf) this.#take(this.#parts.join("") + text.slice(start, index), events);
      this.#parts = [];
      start = index + 1;
    }
    if (start < text.length) this.#parts.push(text.slice(start));
    if (text !== "") this.#isAfterReturn = text.endsWith("\r");
    return events;
  }

  #take(line: string, events: string[]): void {
    if (line === "") {
      if (this.#data.length > 0) events.push(this.#data.join("\n"));
      this.#data = [];
    } else if (line.startsWith("data:")) this.#data.push(line.slice(line.charAt(5) === " " ? 6 : 5));
  }
}
