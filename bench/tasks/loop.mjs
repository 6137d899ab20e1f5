// node loop.mjs <file> <lanes> own|queued: create → claim → settle on a shared file, until the moment its parent says.
// `own` begins each task under its maker's claim, as a server does that has a place free; `queued` leaves it to whoever
// claims first.
import { rmSync } from "node:fs";
import process from "node:process";
import { openStore } from "../../src/store/open.ts";
import { newTask, project, text } from "./engine.mjs";

const [file, lanes, kind] = process.argv.slice(2);
const warmUpTurns = 300;
const worker = `bench ${process.pid}`;
const outcome = { ending: "completed", data: { text }, messages: [], log: [], durationMs: 0 };

await warmUp();
const store = await openStore(file);
process.once("message", async ({ until }) => {
  await runLanes(store, () => Date.now() >= until);
  await store.close();
  process.disconnect();
});
process.send("ready");

/** On a file of its own: how fast a process finds its feet is not the question. */
async function warmUp() {
  const scratch = `${file}.${process.pid}`;
  const store = await openStore(scratch);
  let turns = 0;
  await runLanes(store, () => ++turns >= warmUpTurns);
  await store.close();
  rmSync(scratch);
}

async function runLanes(store, isOver) {
  await Promise.all(Array.from({ length: Number(lanes) }, () => loop(store, isOver)));
}

/** Every turn makes one task and ends one, its own or another process's, so that none are left over. */
async function loop(store, isOver) {
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
  } while (!isOver());
}
