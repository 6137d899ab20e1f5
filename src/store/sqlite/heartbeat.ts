import { parentPort, workerData } from "node:worker_threads";
import Database from "better-sqlite3";
import { systemClock } from "../../clock.ts";
import { toExactText } from "../exact-text.ts";
import { isBusy } from "./connection.ts";
import { statements } from "./statements.ts";

/**
 * Renews a worker's leases from a thread of its own, where a command that blocks the event loop cannot stop it.
 * Ends with its process: a dead worker must not look alive.
 *
 * Who writes next to an SQLite file is a matter of luck, and busy writers crowd out whoever asks seldom. So a beat that
 * finds the file locked asks again at once, and often, instead of leaving the waiting to SQLite, which asks ten times a
 * second.
 */
const { file, worker, leaseMs, everyMs } = workerData as {
  file: string;
  worker: string;
  leaseMs: number;
  everyMs: number;
};
const busyPauseMs = 2;
const troublePauseMs = Math.min(everyMs, 1_000);
let renew: Database.Statement | undefined;

let cancelBeat: () => void = () => {};

parentPort?.once("message", () => {
  cancelBeat();
  renew?.database.close();
});
beat();

function beat(): void {
  cancelBeat = systemClock.after(tryToRenew(), beat);
}

/** How long to wait before the next beat. Must not throw: a lease outlasts the trouble of three beats. */
function tryToRenew(): number {
  try {
    renew ??= openRenew();
    renew.run({ worker: toExactText(worker), leaseMs, now: systemClock.now() });
    return everyMs;
  } catch (error) {
    return isBusy(error) ? busyPauseMs : troublePauseMs;
  }
}

/** Never makes the file: where it is gone, an empty one in its place would only hide that. */
function openRenew(): Database.Statement {
  const db = new Database(file, { fileMustExist: true, timeout: 0 });
  try {
    db.pragma("synchronous = NORMAL");
    return db.prepare(statements.renew);
  } catch (error) {
    db.close();
    throw error;
  }
}
