import { expect, test } from "vitest";
import { systemClock } from "../../../src/clock.ts";
import { silentLog } from "../../../src/log.ts";
import { loadDriver } from "../../../src/store/postgres/driver.ts";
import { PostgresStore } from "../../../src/store/postgres/postgres-store.ts";
import { waitFor } from "../../helpers/meanwhile.ts";
import { onOwnDatabase, withClient } from "../../helpers/own-database.ts";
import { adminOf, serverPort } from "../../helpers/postgres.ts";
import { newTask } from "../../store-suite/cases/bench.ts";

// In the product the store that is opened loads it.
await loadDriver();

const admin = adminOf(serverPort);
const done = { ending: "completed" as const, data: {}, messages: [], log: [], durationMs: 1 };

/** What several nodes do at once, and how often the server had to end one of them for it. */
async function deadlocksOf(count: number, act: (nodes: readonly PostgresStore[]) => Promise<void>): Promise<number> {
  let deadlocks = Number.NaN;
  await onOwnDatabase(admin, async ({ url }) => {
    const nodes = Array.from({ length: count }, () => new PostgresStore(url, systemClock, silentLog));
    try {
      await act(nodes);
    } finally {
      await Promise.all(nodes.map((node) => node.close()));
    }
    deadlocks = await withClient(url, async (client) => {
      const others = "select 1 from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()";
      await waitFor(
        async () => (await client.query(`${others} and backend_type = 'client backend'`)).rows.length === 0,
      );
      const { rows } = await client.query("select deadlocks from pg_stat_database where datname = current_database()");
      return Number(rows[0]?.deadlocks);
    });
  });
  return deadlocks;
}

const inLoops = (loops: number, act: (loop: number) => Promise<void>) =>
  Promise.all(Array.from({ length: loops }, (_, loop) => act(loop)));

test("three nodes that make calls and tasks for strangers, whose oldest results go for them, never wait for each other in a ring", async () => {
  const deadlocks = await deadlocksOf(3, async (nodes) => {
    await inLoops(24, async (loop) => {
      const node = nodes[loop % nodes.length] as PostgresStore;
      for (let n = 0; n < 25; n++) {
        const isCall = (loop + n) % 2 === 0;
        const fresh = newTask(0, {
          taskId: crypto.randomUUID(),
          caller: "anonymous",
          digest: crypto.randomUUID(),
          isCall,
        });
        const keeps = { count: 12, bytes: 1_000_000 };
        const claim = { worker: `w${loop}`, leaseMs: 60_000 };
        const created = await node.create(fresh, { joinsEqual: false, maxLive: 1_000, keeps, claim });
        expect(created.kind).toBe("created");
        if (created.kind === "created") await node.settle(created.task, done);
      }
    });
  });
  expect(deadlocks).toBe(0);
});

test("leases are renewed while their tasks end, and neither waits for the other in a ring", async () => {
  const deadlocks = await deadlocksOf(1, async ([node]) => {
    if (node === undefined) return;
    const claim = { worker: "w", leaseMs: 60_000 };
    const stop = node.keepLeases(claim.worker, claim.leaseMs, 5);
    await inLoops(32, async () => {
      for (let n = 0; n < 40; n++) {
        const fresh = newTask(0, { taskId: crypto.randomUUID(), caller: "ada", digest: crypto.randomUUID() });
        const created = await node.create(fresh, { joinsEqual: false, maxLive: 1_000, claim });
        expect(created.kind === "created" && (await node.settle(created.task, done))).toBe(true);
      }
    });
    await stop();
  });
  expect(deadlocks).toBe(0);
});
