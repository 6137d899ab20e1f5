import type { Logger } from "../../log.ts";
import { startLeaseThread } from "../lease-thread.ts";

export interface KeptLeases {
  readonly file: string;
  readonly worker: string;
  readonly leaseMs: number;
  readonly everyMs: number;
}

export const leaseThread = { built: "heartbeat.mjs", source: "store/sqlite/heartbeat.ts" } as const;

/** Starts the thread that renews a worker's leases; what is returned stops it, and resolves when it has ended. */
export function startLeaseKeeper(leases: KeptLeases, log: Logger): () => Promise<void> {
  return startLeaseThread(leaseThread, leases, log);
}
