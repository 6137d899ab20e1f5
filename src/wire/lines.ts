import { fieldsOf } from "./json.ts";

/** No message over a pipe or a socket is longer. */
export const maxLineBytes = 10 * 1024 * 1024;

/** Cuts a byte stream into lines at 0x0A and nowhere else: U+2028 inside a string is not the end of a message. */
export class LineSplitter {
  #parts: Buffer[] = [];
  #size = 0;
  #isSkipping = false;
  readonly #maxBytes: number;

  constructor(maxBytes = maxLineBytes) {
    this.#maxBytes = maxBytes;
  }

  /** The lines that end in this chunk; `tooLong` stands for one that was dropped while it arrived. */
  *push(chunk: Buffer): Generator<Buffer | "tooLong"> {
    let start = 0;
    while (start < chunk.length) {
      const newline = chunk.indexOf(0x0a, start);
      const end = newline === -1 ? chunk.length : newline;
      this.#add(chunk.subarray(start, end));
      if (newline === -1) return;
      const line = this.#isSkipping ? ("tooLong" as const) : this.#take();
      this.#reset();
      if (line === "tooLong" || line.length > 0) yield line;
      start = newline + 1;
    }
  }

  /** True while a line that nobody reads is still arriving: one that never ends would be waited for as long. */
  get isTooLong(): boolean {
    return this.#isSkipping;
  }

  /** What came after the last newline, once nothing more will come. */
  rest(): Buffer | undefined {
    const line = this.#isSkipping || this.#size === 0 ? undefined : this.#take();
    this.#reset();
    return line;
  }

  #add(part: Buffer): void {
    this.#size += part.length;
    if (this.#size > this.#maxBytes) {
      this.#isSkipping = true;
      this.#parts = [];
    } else if (part.length > 0) {
      this.#parts.push(part);
    }
  }

  #take(): Buffer {
    const line = this.#parts.length === 1 ? (this.#parts[0] as Buffer) : Buffer.concat(this.#parts);
    const isCarriageReturn = line.at(-1) === 0x0d;
    return isCarriageReturn ? line.subarray(0, -1) : line;
  }

  #reset(): void {
    this.#parts = [];
    this.#size = 0;
    this.#isSkipping = false;
  }
}

/** A line's JSON; undefined for what is none. Not weighed: for lines that somebody else takes, or refuses. */
export function parseLine(line: Buffer): unknown {
  try {
    return JSON.parse(line.toString("utf8"));
  } catch {
    return undefined;
  }
}

/**
 * The line that the stdio proxy sends before a message that waited for its daemon to start. The host counts its limit
 * from the moment when it sent the message to the proxy.
 */

const start = '{"meanwhile":"waited","ms":';
const startBytes = Buffer.from(start);
/** Shorter waits are not reported. */
const minMs = 50;

/** The line, without its newline; undefined where the wait was too short to count. */
export function toWaitedLine(ms: number): Buffer | undefined {
  return ms < minMs ? undefined : Buffer.from(`${start}${Math.round(ms)}}`);
}

/** How long the next message waited, in milliseconds; undefined for any other line. */
export function readWaitedLine(line: Buffer): number | undefined {
  if (!line.subarray(0, startBytes.length).equals(startBytes)) return undefined;
  const { ms } = fieldsOf(parseLine(line));
  return typeof ms === "number" && ms >= 0 ? ms : undefined;
}
