// node loop.mjs <host> <port> <queue> <lanes> <text's length>: add → take → complete by hand, until the moment its
// parent says.
import { randomUUID } from "node:crypto";
import process from "node:process";
import { Queue, Worker } from "bullmq";

const [host, port, name, lanes, length] = process.argv.slice(2);
const connection = { host, port: Number(port) };
const text = "x".repeat(Number(length));
const warmUpTurns = 300;

await warmUp();
const own = await open(name);
process.once("message", async ({ until }) => {
  await runLanes(own, () => Date.now() >= until);
  await own.close();
  process.disconnect();
});
process.send("ready");

async function open(name) {
  const queue = new Queue(name, { connection });
  // Without a function it takes nothing by itself: https://docs.bullmq.io/patterns/manually-fetching-jobs
  const worker = new Worker(name, null, { connection });
  await Promise.all([queue.waitUntilReady(), worker.waitUntilReady()]);
  return {
    queue,
    worker,
    async close() {
      await worker.close();
      await queue.close();
    },
  };
}

/** On a queue of its own: how fast a process finds its feet is not the question. */
async function warmUp() {
  const scratch = await open(`${name}-${process.pid}`);
  let turns = 0;
  await runLanes(scratch, () => ++turns >= warmUpTurns);
  await scratch.queue.obliterate({ force: true });
  await scratch.close();
}

async function runLanes(opened, isOver) {
  await Promise.all(Array.from({ length: Number(lanes) }, () => loop(opened, isOver)));
}

async function loop({ queue, worker }, isOver) {
  const token = randomUUID();
  while (!isOver()) {
    await queue.add("echo", { text });
    const job = await worker.getNextJob(token, { block: false });
    if (job === undefined) throw new Error("there was a job, and nothing to take");
    await job.moveToCompleted({ text }, token, false);
  }
}
