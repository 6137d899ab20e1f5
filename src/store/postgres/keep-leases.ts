import type { Logger } from "../../log.ts";
import { startLeaseThread } from "../lease-thread.ts";
import type { ServerAccess } from "./address.ts";

export interface LeasesToKeep {
  /** Goes from thread to thread in memory: never as an argument. */
  readonly access: ServerAccess;
  /** The statement that renews, which takes the lease's length and the worker. */
  readonly text: string;
  readonly worker: string;
  readonly leaseMs: number;
  readonly everyMs: number;
}

export const leaseThread = {
  built: "meanwhile-postgres-leases.mjs",
  source: "store/postgres/postgres-heartbeat.ts",
} as const;

/** Starts the thread that renews a worker's leases; what is returned stops it, and resolves when it has ended. */
export function startLeaseKeeper(leases: LeasesToKeep, log: Logger): () => Promise<void> {
  return startLeaseThread(leaseThread, leases, log);
}
