import path from "node:path";
import { systemClock } from "../../src/clock.ts";
import { silentLog } from "../../src/log.ts";
import { byStore, openDispatcher } from "../../src/queue/open-dispatcher.ts";
import { isAcrossMachines, openStore, type Store } from "../../src/store/open.ts";
import type { Dispatcher } from "../../src/task/dispatcher.ts";
import type { AuditLine, Row } from "./check.ts";

/** What a run of chaos is played on: a store, who hands out its tasks, and what is to be seen of both from outside. */
export interface Ground {
  readonly address: GroundAddress;
  /** Where processes may begin and end without leaving anything in the run. */
  readonly elsewhere: GroundAddress;
  readonly cast: Cast;
  /** What happens to it now and then, by name. Each resolves when it is over. */
  readonly upsets: ReadonlyMap<string, () => Promise<void>>;
  rows(): Promise<Row[]>;
  audit(): Promise<AuditLine[]>;
  held(): Promise<(Pick<Row, "task_id" | "fence"> & { readonly worker: string })[]>;
  fenceOf(taskId: string): Promise<number | undefined>;
  endedSince(at: number): Promise<Pick<Row, "task_id" | "status" | "outcome">[]>;
  liveCount(): Promise<number>;
  /** What is wrong with the store itself, after everything. */
  damage(): Promise<string[]>;
  close(): Promise<void>;
}

/** How many there are: nodes make tasks, ask, answer and cancel; workers run them; some workers join at half-time. */
interface Cast {
  readonly nodes: number;
  readonly workers: number;
  readonly lateWorkers: number;
}

export interface GroundAddress {
  readonly folder: string;
  readonly store: string;
  readonly queue: string;
}

/** For the processes of a run. Not among their arguments, which everybody can read: there may be a password in it. */
export function toEnvironment({ store, queue }: GroundAddress): Record<string, string> {
  return { MEANWHILE_CHAOS_STORE: store, MEANWHILE_CHAOS_QUEUE: queue };
}

/** The address that a process was started with; without one, the file of its folder. */
export function addressIn(folder: string): GroundAddress {
  const { MEANWHILE_CHAOS_STORE: store, MEANWHILE_CHAOS_QUEUE: queue } = process.env;
  return { folder, store: store ?? path.join(folder, "tasks.db"), queue: queue ?? byStore };
}

/** A store and its dispatcher, as every process of a run has them; a database may just be away. */
export async function openOn({
  store,
  queue,
}: GroundAddress): Promise<{ readonly store: Store; readonly dispatcher: Dispatcher; readonly isApart: boolean }> {
  const isApart = isAcrossMachines(store);
  const opened = await openStore(store, { clock: systemClock, isPatient: isApart });
  const terms = { queue, project: "chaos", clock: systemClock, log: silentLog };
  return { store: opened, dispatcher: await openDispatcher(opened, terms), isApart };
}
