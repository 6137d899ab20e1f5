import { parentPort, workerData } from "node:worker_threads";
import { type HashBatch, hashBatch } from "./hash-batch.ts";

/** Hashes batches of files in a thread of its own. */
const stop = new Int32Array(workerData as SharedArrayBuffer);
const isStopped = () => Atomics.load(stop, 0) !== 0;

parentPort?.on("message", (batch: HashBatch) => {
  try {
    const hashed = hashBatch(batch, isStopped);
    parentPort?.postMessage(hashed, [hashed.digests.buffer, hashed.states.buffer]);
  } catch (error) {
    // Who stopped it expects no answer.
    if (!isStopped()) throw error;
  }
});
