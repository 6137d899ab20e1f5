import { StringDecoder } from "node:string_decoder";

/** One event of a `text/event-stream`. */
export interface ServerEvent {
  readonly data: string;
  readonly id: string | undefined;
  /** How long to wait before the stream is opened again. */
  readonly retryMs: number | undefined;
}

/** Reads a `text/event-stream` in the pieces it comes in. */
export class EventReader {
  readonly #decoder = new StringDecoder("utf8");
  readonly #maxBytes: number;
  /**
   * The parts of a line that has not ended: joined once, so that a line that comes byte by byte is not read over and
   * over.
   */
  #parts: string[] = [];
  #lines: string[] = [];
  #isAfterReturn = false;
  #bytes = 0;

  constructor(maxBytes = Number.POSITIVE_INFINITY) {
    this.#maxBytes = maxBytes;
  }

  /** True when the event that is being read has grown larger than anybody reads: nothing more is to be expected. */
  get isTooLarge(): boolean {
    return this.#bytes > this.#maxBytes;
  }

  /** The events that end in this chunk. */
  push(chunk: Buffer): ServerEvent[] {
    const text = this.#decoder.write(chunk);
    const events: ServerEvent[] = [];
    let start = 0;
    this.#bytes += chunk.length;
    for (const { index } of text.matchAll(/[\r\n]/g)) {
      const isSecondHalf =
        text[index] === "\n" && index === start && (index === 0 ? this.#isAfterReturn : text[index - 1] === "\r");
      if (!isSecondHalf) this.#take(this.#parts.join("") + text.slice(start, index), events, text.length - index);
      this.#parts = [];
      start = index + 1;
    }
    if (start < text.length) this.#parts.push(text.slice(start));
    if (text !== "") this.#isAfterReturn = text.endsWith("\r");
    return events;
  }

  #take(line: string, events: ServerEvent[], left: number): void {
    if (line !== "") return void this.#lines.push(line);
    const event = toEvent(this.#lines);
    this.#lines = [];
    this.#bytes = left;
    if (event !== undefined) events.push(event);
  }
}

/** Undefined for what says nothing, such as a comment that keeps the connection alive. */
function toEvent(lines: readonly string[]): ServerEvent | undefined {
  const data: string[] = [];
  let id: string | undefined;
  let retryMs: number | undefined;
  for (const line of lines) {
    const colon = line.indexOf(":");
    const field = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? "" : line.slice(line.charAt(colon + 1) === " " ? colon + 2 : colon + 1);
    if (field === "data") data.push(value);
    else if (field === "id") id = value;
    else if (field === "retry" && /^\d+$/.test(value)) retryMs = Number(value);
  }
  const text = data.join("\n");
  return text === "" && id === undefined && retryMs === undefined ? undefined : { data: text, id, retryMs };
}

/** An event as it is written; `data` is one line, as JSON is. */
export function toEventText(data: string, id?: string): string {
  return `event: message\n${id === undefined ? "" : `id: ${id}\n`}data: ${data}\n\n`;
}

/** An event that says nothing: it gives the client an id to come back with, and says how long to wait before that. */
export function toMarker(id: string, retryMs: number): string {
  return `id: ${id}\nretry: ${retryMs}\ndata: \n\n`;
}
