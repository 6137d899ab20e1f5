import { StringDecoder } from "node:string_decoder";
import { createParser } from "eventsource-parser";

/** One event of a `text/event-stream`. */
export interface ServerEvent {
  /** What kind of event it is; undefined for a message. */
  readonly name?: string | undefined;
  readonly data: string;
  readonly id: string | undefined;
  /** How long to wait before the stream is opened again. */
  readonly retryMs: number | undefined;
}

/** Reads a `text/event-stream` in the pieces it comes in. */
export class EventReader {
  readonly #decoder = new StringDecoder("utf8");
  readonly #parser: ReturnType<typeof createParser>;
  readonly #maxBytes: number;
  #events: ServerEvent[] = [];
  #id: string | undefined;
  #retryMs: number | undefined;
  /** True when the event that is being read has grown larger than anybody reads: nothing more is to be expected. */
  isTooLarge = false;

  constructor(maxBytes = Number.POSITIVE_INFINITY) {
    this.#maxBytes = maxBytes;
    this.#parser = createParser({
      // Counted in letters, of which none has more than three bytes.
      maxBufferSize: maxBytes,
      onId: (id) => {
        this.#id = id;
      },
      onRetry: (retryMs) => {
        this.#retryMs = retryMs;
      },
      onEvent: ({ data, event }) => this.#take(data, event),
      onError: ({ type }) => {
        this.isTooLarge ||= type === "max-buffer-size-exceeded";
      },
    });
  }

  /** The events that end in this chunk; what has no data but an id, or how long to wait, is one too. */
  push(chunk: Buffer): ServerEvent[] {
    if (!this.isTooLarge) this.#parser.feed(this.#decoder.write(chunk));
    if (this.#id !== undefined || this.#retryMs !== undefined) this.#take("");
    const events = this.#events;
    this.#events = [];
    return events;
  }

  #take(data: string, event?: string): void {
    this.isTooLarge ||= data.length > this.#maxBytes / 3 && Buffer.byteLength(data) > this.#maxBytes;
    // A comment that keeps the connection alive says nothing, and neither does an event without data.
    if (data !== "" || this.#id !== undefined || this.#retryMs !== undefined)
      this.#events.push({
        ...(event !== undefined && event !== "message" && { name: event }),
        data,
        id: this.#id,
        retryMs: this.#retryMs,
      });
    this.#id = undefined;
    this.#retryMs = undefined;
  }
}

/** An event as it is written; `data` is one line, as JSON is. */
export function toEventText(data: string, id?: string): string {
  return `${toEventHead(id)}${data}${eventTail}`;
}

/** What stands before and after the data of an event, for data that is too large to be copied into one text. */
export function toEventHead(id?: string): string {
  return `event: message\n${id === undefined ? "" : `id: ${id}\n`}data: `;
}
export const eventTail = "\n\n";

/** An event that says nothing: it gives the client an id to come back with, and says how long to wait before that. */
export function toMarker(id: string, retryMs: number): string {
  return `id: ${id}\nretry: ${retryMs}\ndata: \n\n`;
}
