// BullMQ's side of the tasks bench, written the way its documentation shows.
import { Queue, QueueEvents, Worker } from "bullmq";

/** Two queues: one that nobody works on, for creating alone, and one with a worker in this process. */
export async function openBullmq({ host, port }, name, text) {
  const connection = { host, port };
  const idle = new Queue(`${name}-idle`, { connection });
  const queue = new Queue(name, { connection });
  const events = new QueueEvents(name, { connection });
  const worker = new Worker(name, async (job) => job.data, { connection, concurrency: 16 });
  await Promise.all([idle.waitUntilReady(), queue.waitUntilReady(), events.waitUntilReady(), worker.waitUntilReady()]);
  return {
    create: () => idle.add("echo", { text }),
    async createAndWait() {
      const job = await queue.add("echo", { text });
      const result = await job.waitUntilFinished(events);
      if (result.text !== text) throw new Error("BullMQ gave back something else");
    },
    async close() {
      await Promise.all([worker.close(), events.close()]);
      await removeQueues([idle, queue]);
    },
  };
}

/** How many jobs a queue has completed, and between which moments; removes the queue. */
export async function countCompleted({ host, port }, name) {
  const queue = new Queue(name, { connection: { host, port } });
  const counts = await queue.getJobCounts();
  const [first] = await queue.getJobs(["completed"], 0, 0, true);
  const [last] = await queue.getJobs(["completed"], 0, 0, false);
  const others = Object.entries(counts).filter(([state, count]) => state !== "completed" && count > 0);
  await removeQueues([queue]);
  if (others.length > 0) throw new Error(`BullMQ left jobs behind: ${JSON.stringify(counts)}`);
  return { completed: counts.completed, tookMs: last.finishedOn - first.timestamp };
}

async function removeQueues(queues) {
  for (const queue of queues) {
    await queue.obliterate({ force: true });
    await queue.close();
  }
}
