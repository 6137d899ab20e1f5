import { type ChildProcess, spawn } from "node:child_process";
import { tmpdir } from "node:os";
import path from "node:path";
import Database from "better-sqlite3";
import { onTestFinished } from "vitest";
import { type Clock, systemClock } from "../../src/clock.ts";
import { silentLog } from "../../src/log.ts";
import { MemoryStore } from "../../src/store/memory-store.ts";
import { openStore, type Store } from "../../src/store/open.ts";
import { statements } from "../../src/store/sqlite/statements.ts";
import { Engine } from "../../src/task/engine.ts";
import { History } from "../../src/task/history.ts";
import type { Task } from "../../src/task/task.ts";
import { temporaryFolder } from "../helpers/home.ts";
import { entryOf, type Kind } from "./commands.ts";

/** Both stores, as tests of what must hold on either want them; closed after the test. */
export const stores: readonly (readonly [string, (clock?: Clock) => Promise<Store>])[] = [
  ["memory", async (clock = systemClock) => closedAfterwards(new MemoryStore(clock))],
  [
    "SQLite",
    async (clock = systemClock) => {
      const file = path.join(temporaryFolder(), "tasks.db");
      const store = closedAfterwards(await openStore(file, { clock }));
      return clock === systemClock ? store : withHeartbeat(store, file, clock);
    },
  ],
];

/** The thread that renews leases goes by the machine's clock; here it is by the test's. */
function withHeartbeat(store: Store, file: string, clock: Clock): Store {
  store.keepLeases = (worker, leaseMs, everyMs) => {
    const db = new Database(file);
    const renew = db.prepare(statements.renew);
    let cancel = () => {};
    const beat = () => {
      renew.run({ worker, leaseMs, now: clock.now() });
      cancel = clock.after(everyMs, beat);
    };
    beat();
    return async () => {
      cancel();
      db.close();
    };
  };
  return store;
}

function closedAfterwards<S extends Store>(store: S): S {
  onTestFinished(() => store.close());
  return store;
}

/** An engine on the file that the worker processes of a folder share. */
export async function openStage(folder: string): Promise<{
  readonly store: Store;
  readonly engine: Engine;
  readonly create: (kind: Kind, input: object) => Promise<Task>;
}> {
  const store = closedAfterwards(await openStore(path.join(folder, "tasks.db")));
  const engine = engineOn(store);
  const create = async (kind: Kind, input: object) => {
    const entry = entryOf(kind);
    if (entry === undefined) throw new Error(`There is no command ${kind}.`);
    return (await engine.create({ entry, input, caller: "local:ada", reason: "test", isNew: true })).task;
  };
  return { store, engine, create };
}

export function engineOn(store: Store, clock: Clock = systemClock): Engine {
  const history = new History(store, clock);
  return new Engine({
    store,
    history,
    clock,
    log: silentLog,
    project: "chaos",
  });
}

/** Starts worker.ts on a folder and waits until it works; it is killed after the test. */
export async function startWorker(
  folder: string,
  leaseMs: number,
  wrapper: readonly string[] = [],
): Promise<ChildProcess> {
  const words = [...wrapper, process.execPath, path.join(import.meta.dirname, "worker.ts"), folder, String(leaseMs)];
  const child = spawn(words[0] as string, words.slice(1), {
    // A process that is meant to crash says so at length.
    stdio: ["pipe", "pipe", "ignore"],
    env: { ...process.env, NODE_COMPILE_CACHE: path.join(tmpdir(), "meanwhile-test-code") },
  });
  const exited = new Promise((resolve) => child.on("close", resolve));
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await exited;
  });
  child.stdin?.on("error", () => {});
  await Promise.race([new Promise((resolve) => child.stdout?.once("data", resolve)), exited]);
  return child;
}

export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
