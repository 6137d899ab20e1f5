// node loop.mjs <file> <lanes> own|queued: create → claim → settle on a shared file, until the moment its parent says.
// `own` begins each task under its maker's claim, as a server does that has a place free; `queued` leaves it to whoever
// claims first.
import process from "node:process";
import { openStore } from "../../src/store/open.ts";
import { newTask, project, text } from "./engine.mjs";

const [file, lanes, kind] = process.argv.slice(2);
const store = await openStore(file);
const worker = `bench ${process.pid}`;
const outcome = { ending: "completed", data: { text }, messages: [], log: [], durationMs: 0 };

process.once("message", async ({ until }) => {
  await Promise.all(Array.from({ length: Number(lanes) }, () => loop(until)));
  await store.close();
  process.disconnect();
});
process.send("ready");

/** Every turn makes one task and ends one, its own or another process's, so that none are left over. */
async function loop(until) {
  const claim = { worker, leaseMs: 30_000 };
  const options = { joinsEqual: false, maxLive: 100, ...(kind === "own" && { claim }) };
  do {
    const created = await store.create(newTask(worker), options);
    if (created.kind !== "created") throw new Error(`create gave ${created.kind}`);
    let claimed = kind === "own" ? created.task : undefined;
    // Nothing for us yet: another process took ours, and its own is younger than the moment we asked for.
    while (claimed === undefined) claimed = await store.claim({ project, ...claim });
    if (!(await store.settle(claimed, outcome))) throw new Error("a result was refused");
    // Timers and the other lanes get their turn, as in a server.
    await new Promise(setImmediate);
  } while (Date.now() < until);
}
