import { StringDecoder } from "node:string_decoder";
import { maxMessageBytes, tooLarge } from "./link.ts";

/** One event of a `text/event-stream`. */
export interface ServerEvent {
  readonly data: string;
  readonly id: string | undefined;
  /** How long to wait before the stream is opened again. */
  readonly retryMs: number | undefined;
}

/** Cuts a `text/event-stream` into its events; throws when one grows too large. */
export class EventSplitter {
  readonly #decoder = new StringDecoder("utf8");
  #rest = "";
  #lines: string[] = [];
  #size = 0;

  *push(chunk: Buffer): Generator<ServerEvent> {
    const lines = (this.#rest + this.#decoder.write(chunk)).split(/\r\n|\n|\r(?=[^\n])/);
    this.#rest = lines.pop() ?? "";
    this.#size += chunk.length;
    for (const line of lines) {
      if (line !== "") {
        this.#lines.push(line);
        continue;
      }
      const event = toEvent(this.#lines);
      this.#lines = [];
      this.#size = this.#rest.length;
      if (event !== undefined) yield event;
    }
    if (this.#size > maxMessageBytes) throw new Error(tooLarge);
  }
}

function toEvent(lines: readonly string[]): ServerEvent | undefined {
  const valuesOf = (field: string) =>
    lines.flatMap((line) => {
      const [, name, value = ""] = /^([^:]+):? ?(.*)$/s.exec(line) ?? [];
      return name === field ? [value] : [];
    });
  const retry = valuesOf("retry").at(-1);
  const event = {
    data: valuesOf("data").join("\n"),
    id: valuesOf("id").at(-1),
    retryMs: retry !== undefined && /^\d+$/.test(retry) ? Number(retry) : undefined,
  };
  return event.data === "" && event.id === undefined && event.retryMs === undefined ? undefined : event;
}
