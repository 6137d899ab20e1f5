// node lock-probe.mjs <file>: asks for the write lock again and again; on a message, how long the longest wait was.
import process from "node:process";
import Database from "better-sqlite3";

const [file] = process.argv.slice(2);
const db = new Database(file, { timeout: 0 });
const nap = new Int32Array(new SharedArrayBuffer(4));
let longestMs = 0;

/** One turn at the lock, waited for at once and often: SQLite itself would ask ten times a second. */
function probe() {
  const startedAt = performance.now();
  for (;;) {
    try {
      db.exec("begin immediate; rollback");
      break;
    } catch (error) {
      if (!error.code?.startsWith("SQLITE_BUSY")) throw error;
      Atomics.wait(nap, 0, 0, 0.2);
    }
  }
  longestMs = Math.max(longestMs, performance.now() - startedAt);
  setTimeout(probe, 2);
}

process.on("message", () => {
  process.send({ longestMs });
  longestMs = 0;
});
process.on("disconnect", () => process.exit(0));
process.send("ready");
probe();
