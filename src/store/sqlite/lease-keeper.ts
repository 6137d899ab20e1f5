import { Worker as Thread } from "node:worker_threads";

export interface KeptLeases {
  readonly file: string;
  readonly worker: string;
  readonly leaseMs: number;
  readonly everyMs: number;
}

/** Starts the thread that renews a worker's leases; what is returned stops it, and resolves when it has ended. */
export function startLeaseKeeper(leases: KeptLeases): () => Promise<void> {
  const entry = import.meta.url.endsWith(".ts") ? "./heartbeat.ts" : "./heartbeat.js";
  const thread = new Thread(new URL(entry, import.meta.url), { workerData: leases, stdout: true });
  thread.unref();
  thread.on("error", () => undefined);
  const exited = new Promise<void>((resolve) => thread.once("exit", () => resolve()));
  // Asked, not ended: a thread that is cut off while it loads a native module takes the whole process with it.
  return async () => {
    thread.ref();
    thread.postMessage("stop");
    await exited;
  };
}
