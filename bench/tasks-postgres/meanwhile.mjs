// Meanwhile on PostgreSQL: makes tasks, runs them, or both.
import process from "node:process";
import { openEngine, text } from "../tasks/engine.mjs";
import { count, eachOf, role, say, told, url, width } from "./role.mjs";

let done = 0;
const end = told("end");
const engine = await openEngine(url, {
  queue: url,
  // Who makes what it runs has places to spare: one is free again a moment after its task was seen to end.
  concurrency: role === "both" ? 3 * width : width,
  maxLive: count,
  worksHere: role !== "make",
  onRun: () => {
    done += 1;
  },
});
engine.worker.start();
const go = told("go");
// The connections are there before anything counts.
await engine.store.workers();
say("ready");
if (role === "work") {
  while (done < count || engine.worker.running.tasks > 0) await new Promise((resolve) => setTimeout(resolve, 5));
  say("done");
} else {
  await go;
  await eachOf(async (left) => {
    // A caller may have a hundred live tasks; who makes without waiting has as many as there are.
    const caller = role === "both" ? "bench" : `bench ${left >> 6}`;
    const task = await engine.create("echo", caller, { text: `${left} ${text}` });
    if (role === "both") await engine.wait(task);
  });
  if (role === "both") say("done");
}
await end;
await engine.close();
process.exit(0);
