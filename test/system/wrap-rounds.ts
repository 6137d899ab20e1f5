import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { serveHttp } from "../fixtures/gateway/http.mjs";

/**
 * Hosts that come to `wrap` and leave it, politely or by kill -9, with and without calls that run, all at one daemon; then
 * what of them is left. Linux alone: what a process has open is read from /proc.
 */

export interface RoundsOptions {
  readonly rounds: number;
  /** Before anything is measured; what is made once is made by then. */
  readonly warmUp: number;
  readonly parallel: number;
  readonly onProgress?: (line: string) => void;
}

export interface RoundsReport {
  readonly killed: number;
  /** How many rounds of each kind there were. */
  readonly kinds: Readonly<Record<string, number>>;
  readonly before: DaemonSight;
  readonly after: DaemonSight;
  /** Servers that were started for somebody who has left, a while after the last one has. */
  readonly orphans: readonly number[];
  /** Sessions at a server over HTTP that nobody has ended. */
  readonly sessions: number;
  /** Processes that are on record as running. */
  readonly records: number;
}

/** What one process has open, and how much it keeps. */
interface DaemonSight {
  readonly pid: number;
  readonly sockets: number;
  readonly fds: number;
  readonly heapMB: number;
  readonly rssMB: number;
}

const repository = path.resolve(import.meta.dirname, "../..");
const executable = path.join(repository, "bin/meanwhile.cjs");
const fixture = path.join(repository, "test/fixtures/gateway/stdio.mjs");
const patienceMs = 60_000;
/** What a host has done before it leaves. */
const kinds = ["looked", "called", "in a call", "in a task"] as const;
type Kind = (typeof kinds)[number];

export async function runWrapRounds(options: RoundsOptions): Promise<RoundsReport> {
  const scratch = mkdtempSync(path.join(tmpdir(), "meanwhile-rounds-"));
  const far = await serveHttp("plain");
  const asked = (wanted: string) => far.seen.filter(({ method, message }) => (message.method ?? method) === wanted);
  const sessions = () => asked("initialize").length - asked("DELETE").length;
  const place = new Place(scratch, far.url);
  try {
    await place.run(options.warmUp, options);
    await place.settle(() => sessions() === 0);
    const before = await place.look();
    const counts = await place.run(options.rounds, options);
    await place.settle(() => sessions() === 0 && socketsOf(before.pid) <= before.sockets);
    const after = await place.look();
    return {
      ...counts,
      before,
      after,
      orphans: place.upstreams(),
      sessions: sessions(),
      records: place.records(),
    };
  } finally {
    await place.close();
    await far.close();
    rmSync(scratch, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  }
}

/** What must not be; empty where all is well. Memory is judged where there were enough rounds to tell. */
export function brokenBy({ before, after, orphans, sessions, records }: RoundsReport, rounds: number): string[] {
  const [heap, rss] = [after.heapMB - before.heapMB, after.rssMB - before.rssMB];
  return [
    orphans.length > 0 && `${orphans.length} servers outlive who they were started for: ${orphans.join(", ")}`,
    records > 0 && `${records} servers are on record though none runs`,
    sessions !== 0 && `${sessions} sessions at the server over HTTP were not ended`,
    after.pid !== before.pid && `daemon ${before.pid} has died`,
    after.sockets > before.sockets && `${after.sockets - before.sockets} sockets of the daemon were left open`,
    after.fds > before.fds && `${after.fds - before.fds} files of the daemon were left open`,
    rounds >= 200 && heap > 3 && `the daemon's heap has grown by ${heap.toFixed(1)} MB`,
    rounds >= 200 && rss > 40 && `the daemon has grown by ${rss.toFixed(0)} MB`,
  ].filter((line) => line !== false);
}

/** A home with one daemon, two servers behind it, and hosts that come and leave. */
class Place {
  readonly #scratch: string;
  readonly #home: string;
  readonly #mark = `WRAP_ROUNDS=${randomUUID()}`;
  readonly #fronts = new Set<ChildProcessWithoutNullStreams>();

  constructor(scratch: string, url: string) {
    this.#scratch = scratch;
    this.#home = path.join(scratch, "home");
    const mcpServers = { near: { command: process.execPath, args: [fixture] }, far: { url } };
    writeFileSync(path.join(scratch, "mcp.json"), JSON.stringify({ mcpServers }));
  }

  /** So many rounds, a few at a time: each kind in turn, and each of them ends in both ways. */
  async run(rounds: number, { parallel, onProgress }: RoundsOptions) {
    const counts = { killed: 0, kinds: Object.fromEntries(kinds.map((kind) => [kind, 0])) };
    let next = 0;
    const host = async () => {
      while (next < rounds) {
        const round = next++;
        const kind = kinds[round % kinds.length] as Kind;
        const isKilled = Math.floor(round / kinds.length) % 2 === 1;
        await this.#round(kind, isKilled);
        counts.kinds[kind] = (counts.kinds[kind] ?? 0) + 1;
        if (isKilled) counts.killed += 1;
        if (round % 50 === 49) onProgress?.(`${round + 1} rounds, ${this.upstreams().length} servers run`);
      }
    };
    await Promise.all(Array.from({ length: parallel }, host));
    return counts;
  }

  async #round(kind: Kind, isKilled: boolean): Promise<void> {
    const [name, value] = this.#mark.split("=") as [string, string];
    const child = spawn(process.execPath, [executable, "wrap", "--from", "mcp.json"], {
      cwd: this.#scratch,
      env: { ...process.env, MEANWHILE_HOME: this.#home, NODE_OPTIONS: "--inspect-port=127.0.0.1:0", [name]: value },
      stdio: ["pipe", "pipe", "pipe"],
    });
    this.#fronts.add(child);
    const exited = new Promise<void>((resolve) => child.on("close", () => resolve()));
    const host = new Host(child);
    await host.begin();
    await host.do(kind);
    if (isKilled) child.kill("SIGKILL");
    else child.stdin.end();
    await within(exited, "a front to leave");
    this.#fronts.delete(child);
  }

  /** Resolves when nothing of what came is left, or after a while. */
  async settle(isQuiet: () => boolean): Promise<void> {
    const end = Date.now() + patienceMs;
    while (!(this.upstreams().length === 0 && isQuiet()) && Date.now() < end) await sleep(100);
  }

  async look(): Promise<DaemonSight> {
    const pid = this.#daemon();
    const heapMB = await heapOf(pid);
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    const rssMB = (Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1]) * 1024) / 1e6;
    return { pid, sockets: socketsOf(pid), fds: filesOf(pid).length, heapMB, rssMB };
  }

  /** Servers that were started for somebody. */
  upstreams(): number[] {
    return processesWith(this.#mark).filter((pid) => wordsOf(pid).includes(fixture));
  }

  records(): number {
    return namesIn(path.join(this.#home, "run")).filter((name) => name.startsWith("upstreams/")).length;
  }

  /** The only one there is. */
  #daemon(): number {
    const [pid, ...others] = processesWith(this.#mark).filter((one) => wordsOf(one).includes("_daemon"));
    if (pid === undefined || others.length > 0) throw new Error(`not one daemon, but ${others.length + 1}`);
    return pid;
  }

  async close(): Promise<void> {
    for (const child of this.#fronts) child.kill("SIGKILL");
    const end = Date.now() + patienceMs;
    while (processesWith(this.#mark).length > 0 && Date.now() < end) {
      for (const pid of processesWith(this.#mark)) kill(pid);
      await sleep(20);
    }
  }
}

/** A client at a front, by hand. */
class Host {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #waiting = new Map<number | string, (message: Said) => void>();
  #lastId = 0;
  #stderr = "";

  constructor(child: ChildProcessWithoutNullStreams) {
    this.#child = child;
    child.stdin.on("error", () => {});
    child.stderr.setEncoding("utf8").on("data", (text: string) => (this.#stderr += text));
    createInterface({ input: child.stdout }).on("line", (line) => {
      const message = JSON.parse(line) as Said;
      const key = message.method === "notifications/progress" ? `p${message.params?.progressToken}` : message.id;
      if (key !== undefined) this.#waiting.get(key)?.(message);
    });
  }

  async begin(): Promise<void> {
    const clientInfo = { name: "rounds", version: "1" };
    await this.#ask("initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo });
    this.#send({ method: "notifications/initialized" });
  }

  async do(kind: Kind): Promise<void> {
    if (kind === "looked") return void (await this.#ask("tools/list"));
    if (kind === "called") return await this.#both((name) => this.#call(`${name}_echo`, { text: name }));
    if (kind === "in a task") return await this.#both((name) => this.#call(`${name}_slow`, aWhile(), { task: {} }));
    await this.#both((name) => this.#runs(`${name}_slow`));
  }

  async #both(act: (name: string) => Promise<unknown>): Promise<void> {
    await Promise.all(["near", "far"].map(act));
  }

  async #call(name: string, input: object, more: object = {}): Promise<void> {
    const { error, result } = await this.#ask("tools/call", { name, arguments: input, ...more });
    if (error !== undefined || result?.isError === true)
      throw new Error(`${name} was answered with ${JSON.stringify(error ?? result)}`);
  }

  /** Resolves when a call has begun to work. */
  async #runs(name: string): Promise<void> {
    const progressToken = ++this.#lastId;
    const began = this.#comes(`p${progressToken}`, name);
    this.#send({
      id: progressToken,
      method: "tools/call",
      params: { name, arguments: aWhile(), _meta: { progressToken } },
    });
    await began;
  }

  #ask(method: string, params: object = {}): Promise<Said> {
    const id = ++this.#lastId;
    const answer = this.#comes(id, method);
    this.#send({ id, method, params });
    return answer;
  }

  #comes(key: number | string, what: string): Promise<Said> {
    const coming = new Promise<Said>((resolve) => this.#waiting.set(key, resolve));
    return within(coming, () => `${what} at a host, beside «${this.#stderr}»`);
  }

  #send(message: object): void {
    this.#child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  }
}

/** No two are equal: equal calls would be one. */
const aWhile = () => ({ seconds: 0.5 + Math.random() / 100 });

interface Said {
  readonly id?: number;
  readonly method?: string;
  readonly params?: { readonly progressToken?: number };
  readonly result?: { readonly isError?: boolean };
  readonly error?: object;
}

async function within<T>(awaited: Promise<T>, what: string | (() => string)): Promise<T> {
  const over = new AbortController();
  const late = sleep(patienceMs, undefined, { signal: over.signal }).then(() => {
    throw new Error(`waited in vain for ${typeof what === "string" ? what : what()}`);
  });
  try {
    return await Promise.race([awaited, late]);
  } finally {
    over.abort();
    late.catch(() => undefined);
  }
}

/** What a process has in use once what it no longer needs is collected: its inspector is asked. */
async function heapOf(pid: number): Promise<number> {
  process.kill(pid, "SIGUSR1");
  const end = Date.now() + patienceMs;
  let address: string | undefined;
  while (address === undefined && Date.now() < end) {
    for (const port of portsOf(pid)) {
      const listed = await fetch(`http://127.0.0.1:${port}/json/list`).then((found) => found.json());
      address = (listed as { webSocketDebuggerUrl: string }[])[0]?.webSocketDebuggerUrl;
    }
    await sleep(50);
  }
  if (address === undefined) throw new Error(`the inspector of ${pid} did not open`);
  const socket = new WebSocket(address);
  await new Promise((resolve) => socket.addEventListener("open", resolve, { once: true }));
  const ask = (id: number, method: string) =>
    new Promise<{ result: { usedSize: number } }>((resolve) => {
      socket.addEventListener("message", ({ data }) => {
        const answer = JSON.parse(String(data)) as { id: number; result: { usedSize: number } };
        if (answer.id === id) resolve(answer);
      });
      socket.send(JSON.stringify({ id, method }));
    });
  await ask(1, "HeapProfiler.collectGarbage");
  await ask(2, "HeapProfiler.collectGarbage");
  const { result } = await ask(3, "Runtime.getHeapUsage");
  const closed = new Promise((resolve) => socket.addEventListener("close", resolve, { once: true }));
  socket.close();
  await closed;
  return result.usedSize / 1e6;
}

/** Where a process listens on TCP. */
function portsOf(pid: number): number[] {
  const own = new Set(filesOf(pid));
  const lines = readOr("/proc/net/tcp").split("\n").slice(1);
  return lines.flatMap((line) => {
    const [, local = "", , state, , , , , , inode] = line.trim().split(/\s+/);
    const isOwn = state === "0A" && own.has(`socket:[${inode}]`);
    return isOwn ? [Number.parseInt(local.split(":")[1] ?? "", 16)] : [];
  });
}

function filesOf(pid: number): string[] {
  return namesIn(`/proc/${pid}/fd`).flatMap((fd) => {
    try {
      return [readlinkSync(`/proc/${pid}/fd/${fd}`)];
    } catch {
      return [];
    }
  });
}

const socketsOf = (pid: number) => filesOf(pid).filter((file) => file.startsWith("socket:")).length;

function processesWith(mark: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && readOr(`/proc/${name}/environ`).split("\0").includes(mark))
    .map(Number);
}

const wordsOf = (pid: number) => readOr(`/proc/${pid}/cmdline`).split("\0");

function readOr(file: string): string {
  try {
    return readFileSync(file, "latin1");
  } catch {
    return "";
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder, { recursive: true, encoding: "utf8" });
  } catch {
    return [];
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It is gone.
  }
}
