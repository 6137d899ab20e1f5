import { workerData } from "node:worker_threads";
import Database from "better-sqlite3";
import { systemClock } from "../../clock.ts";
import { statements } from "./statements.ts";

/**
 * Renews a worker's leases from a thread of its own, where a command that blocks the event loop cannot stop it.
 * Ends with its process: a dead worker must not look alive.
 */
const { file, worker, leaseMs, everyMs } = workerData as { file: string; worker: string; leaseMs: number; everyMs: number };
let renew: Database.Statement | undefined;

beat();

function beat(): void {
  try {
    renew ??= openRenew();
    renew.run({ worker, leaseMs, now: systemClock.now() });
  } catch {
    // A beat that could not be written is followed by the next; the lease outlasts three of them.
  }
  systemClock.after(everyMs, beat);
}

/** Never makes the file: where it is gone, an empty one in its place would only hide that. */
function openRenew(): Database.Statement {
  const db = new Database(file, { fileMustExist: true, timeout: Math.floor(everyMs) });
  try {
    db.pragma("synchronous = NORMAL");
    return db.prepare(statements.renew);
  } catch (error) {
    db.close();
    throw error;
  }
}
