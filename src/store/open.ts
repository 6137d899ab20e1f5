import { existsSync } from "node:fs";
import path from "node:path";
import { type Clock, systemClock } from "../clock.ts";
import { RuntimeError } from "../errors.ts";
import { type Logger, silentLog } from "../log.ts";
import { type Home, type ProcessEnvironment, refuse } from "../paths.ts";
import { thisProgram } from "../program/program.ts";
import { system } from "../system/system.ts";
import type { SharedState } from "../task/shared-state.ts";
import type { TaskStore } from "../task/store.ts";
import { findThread } from "./lease-thread.ts";
import { isPostgresUrl, parseAddress } from "./postgres/address.ts";
import type { PostgresStore } from "./postgres/postgres-store.ts";

/**
 * Which store there is, and how to get at it. A store is named by one word, the setting `store`; that it is the path of
 * an SQLite file, the URL of a PostgreSQL database, or the memory of this process, is known here and below alone.
 */

export { isPostgresUrl };

/** Keeps nothing beyond the life of this process. */
export const memoryStore = ":memory:";

/** Keeps the tasks, and what all servers on it share. */
export interface Store extends TaskStore {
  readonly shared: SharedState;
}

/** The local user whose own a file is: of a home, or of the project of an embedded server. */
export interface LocalOwner {
  readonly key: string;
  /** Absent: the rows of `local` are theirs in every project. */
  readonly project?: string;
}

export interface StoreOptions {
  readonly clock?: Clock;
  readonly log?: Logger;
  /** Opens the database when it is first needed, and tries again when it could not be. Default: at once, or throws. */
  readonly isPatient?: boolean;
  /** How many connections this process opens to a database's server at most, beside the pool. Default: the store's own. */
  readonly besidePool?: number;
  /**
   * The local user whose own the store is, where it is the file of a home or of an embedded server: their rows of the
   * versions before, which kept every local user as `local`, are theirs.
   */
  readonly owner?: (() => LocalOwner) | undefined;
}

const goneCheckMs = 1_000;

/** Opens a store; makes it, for its user alone, when it is missing. */
export async function openStore(store: string, options: StoreOptions = {}): Promise<Store> {
  const { clock = systemClock, log = silentLog, isPatient = false, besidePool, owner } = options;
  if (store === memoryStore) {
    const { MemoryStore } = await import("./memory-store.ts");
    return new MemoryStore(clock);
  }
  if (isPostgresUrl(store)) {
    const postgres = await openPostgres(store, { clock, log, besidePool });
    if (!isPatient) await orClose(postgres);
    return postgres;
  }
  refuseOtherUrl(store);
  const { leaseThread, SqliteStore } = await import("./sqlite/sqlite-store.ts");
  findThread(leaseThread);
  const opened = new SqliteStore(store, clock, log, owner);
  if (!isPatient) opened.open();
  return opened;
}

async function openPostgres(
  url: string,
  { clock, log, besidePool }: { readonly clock: Clock; readonly log: Logger; readonly besidePool: number | undefined },
): Promise<PostgresStore> {
  const { leaseThread, PostgresStore } = await loadPostgres(() => import("./postgres/postgres-store.ts"));
  findThread(leaseThread);
  return new PostgresStore(url, clock, log, besidePool);
}

/** What speaks to PostgreSQL: its driver is there only where somebody has installed it. */
export async function loadPostgres<T>(load: () => Promise<T>): Promise<T> {
  const [{ missingDriver }, { loadDriver }] = await Promise.all([
    import("./postgres/trouble.ts"),
    import("./postgres/driver.ts"),
  ]);
  await loadDriver().catch((error: unknown) => {
    throw isMissing(error, "pg") ? missingDriver() : error;
  });
  return await load();
}

async function orClose(store: PostgresStore): Promise<void> {
  await store.open().catch(async (error: unknown) => {
    await store.close();
    throw error;
  });
}

function isMissing(error: unknown, name: string): boolean {
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown };
  return code === "ERR_MODULE_NOT_FOUND" && String(message).includes(`'${name}'`);
}

/** True when a store's name is the path of a file, which may be resolved and looked at. */
export function isStoreFile(store: string): boolean {
  return store !== memoryStore && !isUrl(store);
}

/** A store's name as everybody may read it: of a database elsewhere its host and its own name. */
export function shownStore(store: string): string {
  if (!isUrl(store)) return store;
  const { protocol, host, pathname } = URL.canParse(store) ? new URL(store) : new URL("unknown://");
  return `${protocol}//${host}${pathname}`;
}

function isUrl(store: string): boolean {
  return /^[a-z][\w+.-]+:\/\//i.test(store);
}

/** Throws for a database of a kind that tasks are not kept in. */
export function refuseOtherUrl(store: string): void {
  if (!isUrl(store) || isPostgresUrl(store)) return;
  throw new RuntimeError(
    "STORE_UNAVAILABLE",
    `Tasks are not kept in databases of the kind ${store.slice(0, store.indexOf(":"))}; set ${thisProgram.variable("STORE")} to the path of a file, or to postgres://….`,
    { forClients: "The task database is of a kind that is not known; whoever runs the server has to name another." },
  );
}

/** Whether there is anything to open yet; makes nothing. A database elsewhere is there, or says why it is not. */
export async function storeExists(store: string): Promise<boolean> {
  return !isStoreFile(store) || existsSync(store);
}

/** Calls back, once, when somebody has taken away a store that was there; until the returned function is called. */
export function onStoreGone(store: string, clock: Clock, listener: () => void): () => void {
  let cancel = () => {};
  if (!isStoreFile(store)) return cancel;
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
  return storeAt(named, cwd, `set ${thisProgram.variable("STORE")} to a file in a folder of your own`);
}

/** The store that somebody names, seen from a folder. Throws when others may have had their hands in it. */
export function storeAt(named: string, cwd: string, cure: string): string {
  if (isUrl(named)) return named;
  const file = path.resolve(cwd, named);
  refuseShared(file, cure);
  return file;
}

/** Throws when others may have had their hands in a store. */
export function refuseShared(file: string, cure: string): void {
  // Whoever may write beside a database can lay a log there, which is carried over into it.
  const parts = [path.dirname(file), file, ...["-wal", "-shm", "-journal"].map((ending) => `${file}${ending}`)];
  refuse(system.refusalOf(parts.map((part) => ({ file: part, isRootTrusted: true, cure }))));
}

/** Whether a store is for several machines: then neither their clocks, nor their processes, nor their files tell much. */
export function isAcrossMachines(store: string): boolean {
  return isPostgresUrl(store);
}

/** A store's name for people: of a database, where it is, without the password. */
export function describeStore(store: string): string {
  if (!isAcrossMachines(store)) return store;
  return `PostgreSQL ${parseAddress(store).shown}`;
}
