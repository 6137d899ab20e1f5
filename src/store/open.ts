import { existsSync } from "node:fs";
import path from "node:path";
import { type Clock, systemClock } from "../clock.ts";
import { type Logger, silentLog } from "../log.ts";
import { type Home, type ProcessEnvironment, refuse } from "../paths.ts";
import { thisProgram } from "../program/program.ts";
import { system } from "../system/system.ts";
import type { Dispatcher } from "../task/dispatcher.ts";
import type { SharedState } from "../task/shared-state.ts";
import type { TaskStore } from "../task/store.ts";

/**
 * Which store there is, and how to get at it. A store is named by one word, the setting `store`; that it is the path of
 * an SQLite file, or the memory of this process, is known here and below alone.
 */

/** Keeps nothing beyond the life of this process. */
export const memoryStore = ":memory:";

/** Keeps the tasks, says which of them is next, and keeps what all servers on it share. */
export interface Store extends TaskStore, Dispatcher {
  readonly shared: SharedState;
}

export interface StoreOptions {
  readonly clock?: Clock;
  readonly log?: Logger;
  /** Opens the database when it is first needed, and tries again when it could not be. Default: at once, or throws. */
  readonly isPatient?: boolean;
}

const goneCheckMs = 1_000;

/** Opens a store; makes it, for its user alone, when it is missing. */
export async function openStore(store: string, options: StoreOptions = {}): Promise<Store> {
  const { clock = systemClock, log = silentLog, isPatient = false } = options;
  if (store === memoryStore) {
    const { MemoryStore } = await import("./memory-store.ts");
    return new MemoryStore(clock);
  }
  const { SqliteStore } = await import("./sqlite/sqlite-store.ts");
  const opened = new SqliteStore(store, clock, log);
  if (!isPatient) opened.open();
  return opened;
}

/** Whether there is anything to open yet; makes nothing. */
export async function storeExists(store: string): Promise<boolean> {
  return store === memoryStore || existsSync(store);
}

/** Calls back, once, when somebody has taken away a store that was there; until the returned function is called. */
export function onStoreGone(store: string, clock: Clock, listener: () => void): () => void {
  let cancel = () => {};
  const look = () => {
    cancel = clock.after(goneCheckMs, () => (existsSync(store) ? look() : listener()));
  };
  look();
  return () => cancel();
}

/** The store that the environment names, or the home's. Throws when others may have had their hands in it. */
export function storeOf(home: Home, env: ProcessEnvironment, cwd: string): string {
  const named = env[thisProgram.variable("STORE")];
  if (!named) return home.tasksFile;
  const file = path.resolve(cwd, named);
  refuseShared(file, `set ${thisProgram.variable("STORE")} to a file in a folder of your own`);
  return file;
}

/** Throws when others may have had their hands in a store. */
export function refuseShared(file: string, cure: string): void {
  // Whoever may write beside a database can lay a log there, which is carried over into it.
  const parts = [path.dirname(file), file, ...["-wal", "-shm", "-journal"].map((ending) => `${file}${ending}`)];
  refuse(system.refusalOf(parts.map((part) => ({ file: part, isRootTrusted: true, cure }))));
}
