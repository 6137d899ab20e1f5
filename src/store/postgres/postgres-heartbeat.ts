import { parentPort, workerData } from "node:worker_threads";
import type pg from "pg";
import { systemClock } from "../../clock.ts";
import { toExactText } from "../exact-text.ts";
import { connectionTerms } from "./connection-terms.ts";
import { loadDriver } from "./driver.ts";
import type { LeasesToKeep } from "./keep-leases.ts";

/**
 * Renews a worker's leases from a thread of its own, where a command that blocks the event loop cannot stop it. Ends
 * with its process: a dead worker must not look alive. Its connection is its own, too, and made anew when it breaks.
 */
const { access, text, worker, leaseMs, everyMs } = workerData as LeasesToKeep;
const troublePauseMs = Math.min(everyMs, 1_000);
let client: pg.Client | undefined;
let isStopped = false;
let cancelBeat: () => void = () => {};

parentPort?.once("message", () => {
  isStopped = true;
  cancelBeat();
  void client?.end().catch(() => undefined);
});
void beat();

/** Must not throw: a lease outlasts the trouble of three beats. */
async function beat(): Promise<void> {
  const pauseMs = await tryToRenew();
  if (!isStopped) cancelBeat = systemClock.after(pauseMs, () => void beat());
}

/** How long to wait before the next beat. */
async function tryToRenew(): Promise<number> {
  try {
    if (client === undefined) await connect();
    await client?.query({ name: "renew", text, values: [leaseMs, toExactText(worker)] });
    return everyMs;
  } catch {
    const broken = client;
    client = undefined;
    await broken?.end().catch(() => undefined);
    return troublePauseMs;
  }
}

async function connect(): Promise<void> {
  const { Client } = await loadDriver();
  client = new Client(connectionTerms(access));
  // The next beat notices.
  client.on("error", () => undefined);
  await client.connect();
}
