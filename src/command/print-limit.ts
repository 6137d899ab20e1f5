import type { Clock } from "../clock.ts";

/** What one command may print in a second; what is more is counted and left out. */
const printLimit = { lines: 500, bytes: 64 * 1024 };
const windowMs = 1_000;

export interface PrintOptions {
  readonly clock: Clock;
  /** Who prints right now. */
  readonly who: () => string | undefined;
  /** Told, at most once a second for each who prints, how much was left out. */
  readonly onLeftOut: (sentence: string) => void;
}

interface Window {
  readonly beganAt: number;
  lines: number;
  bytes: number;
  leftOut: number;
}

/** Counts what is printed; false for what is too much. */
export class PrintLimit {
  readonly #options: PrintOptions;
  readonly #windows = new Map<string, Window>();

  constructor(options: PrintOptions) {
    this.#options = options;
  }

  admit(chunk: string | Uint8Array): boolean {
    const { clock, who } = this.#options;
    const name = who() ?? "something that no command waits for";
    let window = this.#windows.get(name);
    if (window !== undefined && clock.monotonic() - window.beganAt >= windowMs) window = this.#close(name, window);
    if (window === undefined) {
      window = { beganAt: clock.monotonic(), lines: 0, bytes: 0, leftOut: 0 };
      this.#windows.set(name, window);
    }
    const lines = linesIn(chunk);
    const bytes = typeof chunk === "string" ? Buffer.byteLength(chunk) : chunk.length;
    const isAdmitted = window.lines + lines <= printLimit.lines && window.bytes + bytes <= printLimit.bytes;
    if (isAdmitted) {
      window.lines += lines;
      window.bytes += bytes;
      return true;
    }
    const begun = window;
    // Whoever has gone silent is told of, too.
    if (begun.leftOut === 0)
      clock.after(windowMs, () => void (this.#windows.get(name) === begun && this.#close(name, begun)));
    begun.leftOut += lines;
    return false;
  }

  #close(name: string, { leftOut }: Window): undefined {
    this.#windows.delete(name);
    if (leftOut > 0)
      this.#options.onLeftOut(
        `${name} printed ${leftOut} line${leftOut === 1 ? "" : "s"} more, which were left out: ${printLimit.lines} lines and ${printLimit.bytes / 1024} KiB are kept of a second`,
      );
  }
}

function linesIn(chunk: string | Uint8Array): number {
  const text =
    typeof chunk === "string"
      ? chunk
      : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength).toString("latin1");
  return Math.max(1, text.split("\n").length - 1);
}
