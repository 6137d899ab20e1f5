import type { Logger } from "../../log.ts";
import { startLeaseThread } from "../lease-thread.ts";

export interface KeptLeases {
  readonly file: string;
  readonly worker: string;
  readonly leaseMs: number;
  readonly everyMs: number;
}

/** `built` lies beside the output of a bundler, among files of others. */
export const leaseThread = { built: "meanwhile-sqlite-leases.mjs", source: "store/sqlite/heartbeat.ts" } as const;

/** Starts the thread that renews a worker's leases; what is returned stops it, and resolves when it has ended. */
export function startLeaseKeeper(leases: KeptLeases, log: Logger): () => Promise<void> {
  return startLeaseThread(leaseThread, leases, log);
}
