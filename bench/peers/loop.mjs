// node loop.mjs <host> <port> <queue> <lanes> <text's length>: add → take → complete by hand, until the moment its
// parent says.
import { randomUUID } from "node:crypto";
import process from "node:process";
import { Queue, Worker } from "bullmq";

const [host, port, name, lanes, length] = process.argv.slice(2);
const connection = { host, port: Number(port) };
const text = "x".repeat(Number(length));
const queue = new Queue(name, { connection });
// Without a function it takes nothing by itself: https://docs.bullmq.io/patterns/manually-fetching-jobs
const worker = new Worker(name, null, { connection });
await Promise.all([queue.waitUntilReady(), worker.waitUntilReady()]);

process.once("message", async ({ until }) => {
  await Promise.all(Array.from({ length: Number(lanes) }, () => loop(until)));
  await worker.close();
  await queue.close();
  process.disconnect();
});
process.send("ready");

async function loop(until) {
  const token = randomUUID();
  while (Date.now() < until) {
    await queue.add("echo", { text });
    const job = await worker.getNextJob(token, { block: false });
    if (job === undefined) throw new Error("there was a job, and nothing to take");
    await job.moveToCompleted({ text }, token, false);
  }
}
