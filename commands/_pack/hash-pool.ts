import { availableParallelism } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import type { HashBatch, HashedBatch } from "./hash-batch.ts";

export interface HashPool {
  /** How many batches keep all threads busy. */
  readonly width: number;
  /** Hashes the files of a batch, which is given away. */
  hash(batch: HashBatch): Promise<HashedBatch>;
  close(): Promise<void>;
}

interface Thread {
  readonly worker: Worker;
  /** Batches handed over and not yet answered, oldest first. */
  readonly waiting: { resolve(batch: HashedBatch): void; reject(error: unknown): void }[];
}

/** More threads than this would starve whatever else the machine does. */
const maxThreads = 4;

/**
 * Threads that hash files. They start with the first batches; an aborted signal stops them between two pieces of a
 * file.
 */
export function openHashPool(signal: AbortSignal): HashPool {
  const stop = new SharedArrayBuffer(4);
  const threads: Thread[] = [];
  const maximum = Math.min(maxThreads, availableParallelism());
  const stopAll = () => {
    Atomics.store(new Int32Array(stop), 0, 1);
    for (const thread of threads)
      failAll(thread, signal.aborted ? signal.reason : new Error("The threads that hash files were closed."));
  };
  signal.addEventListener("abort", stopAll, { once: true });

  const nextThread = (): Thread => {
    const idle = threads.find((thread) => thread.waiting.length === 0);
    if (idle !== undefined) return idle;
    if (threads.length < maximum) {
      const thread = startThread(stop);
      threads.push(thread);
      // One that has ended answers nothing more.
      thread.worker.once("exit", () => threads.splice(threads.indexOf(thread), 1));
      return thread;
    }
    return threads.reduce((least, thread) => (thread.waiting.length < least.waiting.length ? thread : least));
  };

  return {
    width: 2 * maximum,
    async hash(batch) {
      signal.throwIfAborted();
      const thread = nextThread();
      const answer = new Promise<HashedBatch>((resolve, reject) => thread.waiting.push({ resolve, reject }));
      thread.worker.postMessage(batch, [batch.states.buffer]);
      return await answer;
    },
    async close() {
      signal.removeEventListener("abort", stopAll);
      stopAll();
      await Promise.all(threads.map(({ worker }) => worker.terminate()));
    },
  };
}

function startThread(stop: SharedArrayBuffer): Thread {
  // The same file is `.ts` in a checkout and `.js` in the package.
  const own = fileURLToPath(import.meta.url);
  const worker = new Worker(path.join(path.dirname(own), `hash-worker${path.extname(own)}`), {
    workerData: stop,
    // A thread needs little, and takes what it is given.
    resourceLimits: { maxYoungGenerationSizeMb: 4, maxOldGenerationSizeMb: 64 },
  });
  const thread: Thread = { worker, waiting: [] };
  worker.on("message", (batch: HashedBatch) => thread.waiting.shift()?.resolve(batch));
  worker.on("error", (error) => failAll(thread, error));
  worker.on("exit", () => failAll(thread, new Error("The thread that hashes files has ended.")));
  return thread;
}

function failAll(thread: Thread, error: unknown): void {
  for (const waiting of thread.waiting.splice(0)) waiting.reject(error);
}
