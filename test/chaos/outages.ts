import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { systemClock } from "../../src/clock.ts";
import { silentLog } from "../../src/log.ts";
import { openStore, type Store } from "../../src/store/open.ts";
import { Engine } from "../../src/task/engine.ts";
import { History } from "../../src/task/history.ts";
import { isTerminal, type Task } from "../../src/task/task.ts";
import { newSchema, startServer, urlOf } from "../helpers/postgres.ts";
import { type BreakableProxy, type Failure, openBreakableProxy } from "./breakable-proxy.ts";
import { readLines } from "./check.ts";
import { entryOf, type Kind, type RunLine } from "./commands.ts";
import { toEnvironment } from "./ground.ts";
import { createRandom, pick } from "./random.ts";

const nodeCount = 3;
const startGuardMs = 60_000;

/** A node in a process of its own, which reaches the database through a proxy of its own. */
interface Node {
  readonly child: ChildProcess;
  readonly proxy: BreakableProxy;
}

/** Three nodes on one PostgreSQL server, and an engine in this process that reaches the database directly. */
interface Nodes {
  readonly folder: string;
  readonly nodes: readonly Node[];
  readonly store: Store;
  create(kind: Kind, key: string, ms: number): Promise<Task>;
  read(task: Task): Promise<Task>;
  /** What the runs of a task have written down. */
  runsOf(key: string): readonly RunLine[];
  /** Has the server crash and recover, on the same port. */
  crashServer(): void;
  close(): Promise<void>;
}

/** How an outage begins; in a failover the connections break, and a server that has recovered takes new ones. */
type Outage = Failure | "failover";
const outageKinds: readonly Outage[] = ["refuse", "freeze", "failover"];

export async function openNodes(leaseMs: number): Promise<Nodes> {
  const folder = mkdtempSync(path.join(tmpdir(), "meanwhile-outages-"));
  const server = await startServer(path.join(tmpdir(), `${path.basename(folder)}-postgres`), process.pid);
  const schema = newSchema();
  const store = await openStore(urlOf(server.port, schema));
  const history = new History(store, systemClock);
  const terms = { store, history, clock: systemClock, log: silentLog, project: "chaos" };
  const engine = new Engine(terms);
  const nodes: Node[] = [];
  const result: Nodes = {
    folder,
    nodes,
    store,
    async create(kind, key, ms) {
      const entry = entryOf(kind);
      if (entry === undefined) throw new Error(`There is no command ${kind}.`);
      return (await engine.create({ entry, input: { key, ms }, caller: "local:ada", reason: "test", isNew: true }))
        .task;
    },
    read: ({ taskId }) => engine.get("local:ada", taskId),
    runsOf: (key) => readLines<RunLine>(path.join(folder, "runs.jsonl")).filter((line) => line.key === key),
    crashServer: () => void process.kill(server.pid, "SIGUSR2"),
    async close() {
      const exits = nodes.map(({ child }) => new Promise((resolve) => child.once("close", resolve)));
      for (const { child } of nodes) child.kill("SIGKILL");
      await Promise.all(exits);
      for (const { proxy } of nodes) await proxy.close();
      await store.close();
      process.kill(server.pid, "SIGTERM");
      rmSync(folder, { recursive: true, force: true });
    },
  };
  await Promise.all(
    Array.from({ length: nodeCount }, async () => {
      const proxy = await openBreakableProxy(server.port);
      const url = urlOf(proxy.port, schema);
      const words = [path.join(import.meta.dirname, "worker.ts"), folder, String(leaseMs)];
      const child = spawn(process.execPath, words, {
        stdio: ["pipe", "pipe", "inherit"],
        env: {
          ...process.env,
          ...toEnvironment({ folder, store: url, queue: url }),
          NODE_COMPILE_CACHE: path.join(tmpdir(), "meanwhile-test-code"),
        },
      });
      nodes.push({ child, proxy });
      await Promise.race([
        new Promise((resolve) => child.stdout?.once("data", resolve)),
        wait(startGuardMs, undefined, { ref: false }),
      ]);
    }),
  );
  return result;
}

export interface OutageOptions {
  readonly leaseMs: number;
  readonly outages: number;
  /** The run ends after the outage in which this time passes. Default: unlimited. */
  readonly maxMs?: number;
  readonly shortestMs: number;
  readonly longestMs: number;
  /** How many tasks are live while the database can be reached. */
  readonly liveTasks: number;
  readonly seed: number;
  readonly onProgress?: (line: string) => void;
}

export interface OutageReport {
  readonly outages: number;
  readonly tasks: number;
  /** Sentences: tasks that were interrupted, that ran twice or that did not complete. */
  readonly problems: readonly string[];
  /** How late a timer of this process fired at most: on a busy machine a living worker may miss its lease as well. */
  readonly longestDelayMs: number;
}

/**
 * Cuts all nodes off from the database at once, again and again, while they run tasks. In turn, an outage refuses
 * connections, stays silent, or is a failover. No worker dies, so no task may be interrupted, run twice or fail.
 */
export async function runOutages(options: OutageOptions): Promise<OutageReport> {
  const { leaseMs, shortestMs, longestMs, liveTasks } = options;
  const random = createRandom(options.seed);
  const between = (least: number, most: number) => Math.round(least + random() * (most - least));
  const opened = await openNodes(leaseMs);
  const { nodes } = opened;
  const delays = watchDelays();
  const live = new Map<string, Task>();
  const ended = new Map<string, Task>();
  let made = 0;
  const readLive = async () => {
    for (const [key, before] of live) {
      const task = await opened.read(before);
      if (!isTerminal(task)) continue;
      live.delete(key);
      ended.set(key, task);
    }
  };
  const fill = async (until: number) => {
    while (performance.now() < until) {
      await readLive();
      while (live.size < liveTasks) {
        const key = `task-${++made}`;
        live.set(
          key,
          await opened.create(pick(random, ["safe", "unsafe"]), key, between(leaseMs / 5, 1.5 * longestMs)),
        );
      }
      await wait(100);
    }
  };
  const startedAt = performance.now();
  const isTimeLeft = () => performance.now() - startedAt < (options.maxMs ?? Number.POSITIVE_INFINITY);
  let outages = 0;
  try {
    while (outages < options.outages && (outages === 0 || isTimeLeft())) {
      await fill(performance.now() + between(leaseMs, 2 * leaseMs));
      const outageMs = between(shortestMs, longestMs);
      const kind = outageKinds[outages % outageKinds.length] ?? "refuse";
      for (const { proxy } of nodes) proxy.break(kind === "freeze" ? "freeze" : "refuse");
      if (kind === "failover") opened.crashServer();
      await wait(outageMs);
      for (const { proxy } of nodes) proxy.repair();
      outages += 1;
      options.onProgress?.(`outage ${outages}: ${kind}, ${outageMs} ms; ${made} tasks, ${live.size} live`);
    }
    const guard = performance.now() + 10 * longestMs + 3 * leaseMs + 60_000;
    while (live.size > 0 && performance.now() < guard) {
      await wait(200);
      await readLive();
    }
    const problems = problemsOf(opened, [...live, ...ended]);
    return { outages, tasks: made, problems, longestDelayMs: delays.longestMs() };
  } finally {
    delays.stop();
    await opened.close();
  }
}

/** Measures how late the timers of this process fire. */
function watchDelays(everyMs = 50) {
  let longestMs = 0;
  let firedAt = performance.now();
  const timer = setInterval(() => {
    const now = performance.now();
    longestMs = Math.max(longestMs, now - firedAt - everyMs);
    firedAt = now;
  }, everyMs);
  return { longestMs: () => Math.round(longestMs), stop: () => clearInterval(timer) };
}

function problemsOf({ nodes, runsOf }: Nodes, tasks: readonly (readonly [string, Task])[]): string[] {
  const gone = nodes.filter(({ child }) => child.exitCode !== null).map(() => "a node ended by itself");
  return [
    ...gone,
    ...tasks.flatMap(([key, { command, status, crashes, statusMessage }]) => {
      const starts = runsOf(key).filter(({ what }) => what === "start").length;
      const isRight = status === "completed" && crashes === 0 && starts === 1;
      return isRight
        ? []
        : [
            `${key} (${command}) is ${status}, was interrupted ${crashes} times, began ${starts} times: ${statusMessage}`,
          ];
    }),
  ];
}
