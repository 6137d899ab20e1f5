import { closeSync, constants, fstatSync, openSync, renameSync, writeSync } from "node:fs";
import path from "node:path";
import type { Clock } from "../clock.ts";
import type { Home } from "../paths.ts";
import { redact } from "./resolve-address.ts";

/** What an upstream writes to its stderr is kept in a file of its own, within bounds. */

/** How long it may be before it is put aside; one older file is kept. */
const maxBytes = 1024 * 1024;
/** A line that is longer is written in pieces. */
const maxLine = 16 * 1024;
/** Who writes more in a second has the rest left out: the disk is not theirs. */
const maxBytesPerSecond = 256 * 1024;

/** Where the log of a project's upstream is. */
export function upstreamLogFile(home: Home, project: string, name: string): string {
  return path.join(home.runFolder, `upstream-${name}-${project}.log`);
}

export interface UpstreamLogOptions {
  readonly file: string;
  /** What must not be read in it. */
  readonly secrets: readonly string[];
  readonly clock: Clock;
  /** Told in front of each line: which process of several wrote it. */
  readonly pid?: number | undefined;
}

/** Writes whole lines, each with its time, and never a secret. A disk that is full loses lines and nothing else. */
export class UpstreamLog {
  readonly #options: UpstreamLogOptions;
  #rest = "";
  #since = Number.NEGATIVE_INFINITY;
  #written = 0;
  #leftOut = 0;

  constructor(options: UpstreamLogOptions) {
    this.#options = options;
  }

  /** Takes what was read, in whatever pieces it came. */
  write(text: string): void {
    const lines = `${this.#rest}${text}`.split(/\r?\n/);
    this.#rest = lines.pop() ?? "";
    // A secret must not lie across a cut: what is known is taken out first, and the end, where more may come, is kept.
    if (this.#rest.length > 2 * maxLine) this.#rest = redact(this.#rest, this.#options.secrets);
    while (this.#rest.length > 2 * maxLine) {
      lines.push(this.#rest.slice(0, maxLine));
      this.#rest = this.#rest.slice(maxLine);
    }
    this.#add(lines);
  }

  /** What is left of a last line is written too. */
  close(): void {
    if (this.#rest !== "") this.#add([this.#rest]);
    this.#rest = "";
    this.#append(this.#takeLeftOut());
  }

  #add(lines: readonly string[]): void {
    const { secrets, clock, pid } = this.#options;
    const now = clock.monotonic();
    let text = "";
    if (now - this.#since >= 1_000) {
      this.#since = now;
      this.#written = 0;
      text = this.#takeLeftOut();
    }
    const head = `${new Date(clock.now()).toISOString()} ${pid === undefined ? "" : `${pid} `}`;
    for (const line of lines.map((one) => `${head}${redact(one, secrets)}\n`)) {
      if (this.#written + line.length > maxBytesPerSecond) this.#leftOut += 1;
      else {
        text += line;
        this.#written += line.length;
      }
    }
    this.#append(text);
  }

  #takeLeftOut(): string {
    const count = this.#leftOut;
    this.#leftOut = 0;
    return count === 0 ? "" : `… ${count} line${count === 1 ? "" : "s"} left out: too many in a second\n`;
  }

  #append(text: string): void {
    if (text === "") return;
    const { file } = this.#options;
    try {
      // A link would have us write where somebody else wants it.
      const flags = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW;
      const descriptor = openSync(file, flags, 0o600);
      try {
        writeSync(descriptor, text);
        if (fstatSync(descriptor).size > maxBytes) renameSync(file, `${file}.1`);
      } finally {
        closeSync(descriptor);
      }
    } catch {
      // What an upstream says is a courtesy.
    }
  }
}
