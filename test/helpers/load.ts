import { readFileSync } from "node:fs";
import type { Readable, Writable } from "node:stream";
import { LineSplitter } from "../../src/wire/lines.ts";

/** Clients and looks for tests that move hundreds of megabytes: no more of an answer is looked at than whose it is. */

/** Megabytes of all these processes together. */
function residentMbOf(pids: readonly number[]): number {
  return pids.reduce(
    (sum, pid) => sum + (Number(readQuietly(`/proc/${pid}/statm`).split(" ")[1] ?? 0) * 4096) / 1024 / 1024,
    0,
  );
}

function readQuietly(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return ""; // It has ended.
  }
}

/** Looks at the memory of all of them while something is done; the most it was. */
export async function peakMbOf<T>(
  pids: readonly number[],
  work: Promise<T>,
): Promise<{ readonly result: T; readonly peakMb: number }> {
  let peakMb = residentMbOf(pids);
  const look = setInterval(() => (peakMb = Math.max(peakMb, residentMbOf(pids))), 20);
  try {
    return { result: await work, peakMb };
  } finally {
    clearInterval(look);
  }
}

/** A client on a pair of streams that may stop reading. */
export class LoadClient {
  /** The answers that came, by id: how long each was. */
  readonly answers = new Map<number, number>();
  isClosed = false;
  readonly #output: Writable;
  readonly #input: Readable;
  readonly #watchers = new Set<() => void>();
  #lastId = 0;
  #wanted: number | undefined;
  #said = "";

  constructor(output: Writable, input: Readable) {
    this.#output = output;
    this.#input = input;
    const splitter = new LineSplitter(Number.POSITIVE_INFINITY);
    input.on("data", (chunk: Buffer) => {
      for (const line of splitter.push(chunk)) this.#receive(line as Buffer);
    });
    input.on("close", () => {
      this.isClosed = true;
      this.#tell();
    });
    input.on("error", () => undefined);
    output.on("error", () => undefined);
  }

  async begin(revision = "2025-11-25"): Promise<this> {
    await this.request("initialize", {
      protocolVersion: revision,
      capabilities: {},
      clientInfo: { name: "load", version: "1" },
    });
    this.#output.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
    return this;
  }

  send(method: string, params: object = {}): number {
    const id = ++this.#lastId;
    this.#output.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
    return id;
  }

  call(name: string, input: object): number {
    return this.send("tools/call", { name, arguments: input });
  }

  /** Resolves when the answer is there, or none can come any more. */
  async request(method: string, params: object = {}): Promise<void> {
    const id = this.send(method, params);
    await this.until(() => this.answers.has(id));
  }

  /** Resolves when it is so, or the connection has ended. */
  async until(isSo: () => boolean): Promise<void> {
    await new Promise<void>((resolve) => {
      const look = () => {
        if (!isSo() && !this.isClosed) return;
        this.#watchers.delete(look);
        resolve();
      };
      this.#watchers.add(look);
      look();
    });
  }

  /** The same for small answers, with what they say. */
  async result(method: string, params: object): Promise<Readonly<Record<string, unknown>>> {
    const id = this.send(method, params);
    this.#wanted = id;
    await this.until(() => this.answers.has(id));
    return JSON.parse(this.#said).result as Record<string, unknown>;
  }

  stopReading(): void {
    this.#input.pause();
  }

  readAgain(): void {
    this.#input.resume();
  }

  #receive(line: Buffer): void {
    const ends = `${line.toString("latin1", 0, 100)} ${line.toString("latin1", Math.max(0, line.length - 100))}`;
    const id = /"jsonrpc":"2.0","id":(\d+)/.exec(ends)?.[1] ?? /"id":(\d+)[,}]/.exec(ends)?.[1];
    if (id !== undefined) this.answers.set(Number(id), line.length);
    if (Number(id) === this.#wanted) this.#said = line.toString("utf8");
    this.#tell();
  }

  #tell(): void {
    for (const look of this.#watchers) look();
  }
}
