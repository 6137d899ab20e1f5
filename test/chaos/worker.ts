import path from "node:path";
import { systemClock } from "../../src/clock.ts";
import { surviveCommands } from "../../src/command/process-guard.ts";
import { currentRun } from "../../src/command/running.ts";
import { armFailpoint } from "../../src/failpoint.ts";
import { silentLog } from "../../src/log.ts";
import { system } from "../../src/system/system.ts";
import { createWorkerName, isKnownDead } from "../../src/system/worker-name.ts";
import { History } from "../../src/task/history.ts";
import { createIsolation } from "../../src/task/isolated/isolation.ts";
import { Sweeper } from "../../src/task/sweeper.ts";
import { Worker } from "../../src/task/worker.ts";
import { entryOf } from "./commands.ts";
import { addressIn, openOn } from "./ground.ts";

/** A worker with its sweeper, as `serve` has one: worker.ts <folder> <leaseMs>. Ends with its parent, or on SIGTERM. */
surviveCommands(process, { currentRun, onBug: (error) => process.stderr.write(`${String(error)}\n`) });
armFailpoint(process.env.MEANWHILE_FAILPOINT, () => process.kill(process.pid, "SIGKILL"));
const [folder = "", leaseText = ""] = process.argv.slice(2);
const leaseMs = Number(leaseText);
const clock = systemClock;
const { store, dispatcher, isApart } = await openOn(addressIn(folder));
const childFile = path.join(import.meta.dirname, "../../src/task/isolated/child-process.ts");
const worker = new Worker({
  store,
  dispatcher,
  history: new History(store, clock),
  find: entryOf,
  clock,
  log: silentLog,
  project: "chaos",
  worker: createWorkerName(),
  home: folder,
  config: {},
  isDebug: false,
  leaseMs,
  concurrency: 6,
  runIsolated: createIsolation({ clock, childFile, maxChildren: 2, killGroup: system.killGroup }),
});
// Nobody knows of another machine's processes: there leases alone tell.
const isDead = (name: string) => !isApart && isKnownDead(name);
const sweeper = new Sweeper({ store, dispatcher, clock, log: silentLog, isDead, leaseMs });
worker.start();
sweeper.start();

process.stdin.resume().on("end", () => process.exit(1));
process.once("SIGTERM", () => {
  sweeper.stop();
  void worker
    .stop(2_000)
    .then(() => dispatcher.close())
    .then(() => store.close())
    .then(() => process.exit(0));
});
process.stdout.write("ready\n");
