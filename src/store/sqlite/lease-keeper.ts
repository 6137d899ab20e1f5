import type { Logger } from "../../log.ts";
import { startLeaseThread } from "../lease-thread.ts";

export interface KeptLeases {
  readonly file: string;
  readonly worker: string;
  readonly leaseMs: number;
  readonly everyMs: number;
}

/** Starts the thread that renews a worker's leases; what is returned stops it, and resolves when it has ended. */
export function startLeaseKeeper(leases: KeptLeases, log: Logger): () => Promise<void> {
  const entry = import.meta.url.endsWith(".ts") ? "./heartbeat.ts" : "./heartbeat.js";
  return startLeaseThread(new URL(entry, import.meta.url), leases, log);
}
