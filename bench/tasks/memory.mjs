// node --expose-gc memory.mjs <file> finished|queued|working <count>: prints what so many tasks cost in memory, as
// JSON.
import process from "node:process";
import { openEngine, text } from "./engine.mjs";

const [file, kind, countText] = process.argv.slice(2);
const count = Number(countText);
// All at once only where that is the question; otherwise as the server runs.
const tasks = await openEngine(file, { concurrency: kind === "working" ? count : 16, maxLive: count });
tasks.worker.start();
const measured = kind === "finished" ? await measureFinished() : await measureLive();
// Nothing is given back or closed: the file is thrown away.
process.stdout.write(JSON.stringify(measured), () => process.exit(0));

/** Heap that stays behind for each task that has ended and been read. */
async function measureFinished() {
  // Code is compiled and caches fill up with the first tasks; they are not what grows.
  await finish(Math.ceil(count / 5));
  const before = await heapBytes();
  await finish(count);
  return { bytesPerTask: ((await heapBytes()) - before) / count };
}

async function finish(howMany) {
  for (let at = 0; at < howMany; at++) {
    const ended = await tasks.wait(await tasks.create("echo", `caller ${at % 100}`, { text }));
    if (ended.outcome?.data?.text !== text) throw new Error(`a task ended as ${ended.status}`);
  }
}

async function measureLive() {
  for (let at = 0; at < count; at++) await tasks.create("wait", `caller ${at % 100}`, { text: `${text} ${at}` });
  const running = kind === "working" ? count : 16;
  while (tasks.worker.running < running) await new Promise((resolve) => setTimeout(resolve, 10));
  // The worker has been idle over its tasks for a while: what is resident now stays so.
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  return { residentBytes: process.memoryUsage.rss(), running: tasks.worker.running };
}

async function heapBytes() {
  for (let turn = 0; turn < 3; turn++) {
    await new Promise(setImmediate);
    globalThis.gc();
  }
  return process.memoryUsage().heapUsed;
}
