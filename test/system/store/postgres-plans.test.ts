import { expect, test } from "vitest";
import type { PostgresStore } from "../../../src/store/postgres/postgres-store.ts";
import { Turns } from "../../../src/task/shares.ts";
import { waitFor } from "../../helpers/meanwhile.ts";
import { onOwnDatabase, withClient, withStore } from "../../helpers/own-database.ts";
import { adminOf, serverPort } from "../../helpers/postgres.ts";
import { newTask } from "../../store-suite/cases/bench.ts";

const admin = adminOf(serverPort);
const many = 400;
const waiting = 500;

/** Tasks as somebody has left them: `rows` selects id, caller, status and worker of each. */
async function fill(url: string, rows: string): Promise<void> {
  await withClient(url, (client) =>
    client.query(
      `insert into meanwhile.tasks (task_id, caller, project, command, digest, reason, ttl_ms, is_safe, max_attempts, backoff_ms,
         status, worker, lease_until, fence, attempts, not_before, questions, open_questions, bytes, created_at, updated_at, is_call,
         door, is_endless, is_proven)
       select id, caller, 'p', 'work', id, '', 1000, true, 1, 0, status, worker, case when worker is null then null else 0 end, 1, 0, 0,
         '[]', 0, 2, 0, 0, false, 'mcp', false, false
       from (${rows}) as given (id, caller, status, worker)`,
    ),
  );
}

test("on tables that the planner knows nothing of, a task is made, found, claimed and settled without reading the caller's others", async () => {
  await onOwnDatabase(admin, async ({ url, readsOf }) => {
    const work = async (store: PostgresStore) => {
      const created = await store.create(
        newTask(0, { taskId: crypto.randomUUID(), caller: "ada", digest: crypto.randomUUID(), project: "p" }),
        { joinsEqual: true, maxLive: 10 },
      );
      const task = await store.claim({ project: "p", worker: "w", leaseMs: 60_000 });
      expect(created).toMatchObject({ kind: "created", task: { taskId: task?.taskId } });
      if (task === undefined) return;
      await store.get({ caller: "ada" }, task.taskId);
      await store.settle(task, { ending: "completed", data: {}, messages: [], log: [], durationMs: 1 });
    };
    await withStore(url, async (store) => {
      for (let n = 0; n < many; n++) await work(store);
      const listed = await store.list({ caller: "ada" }, { limit: 10, statuses: ["failed", "queued"] });
      expect(listed.tasks).toEqual([]);
    });
    // Of each row that changed there are dead ones, and entries of them, until somebody cleans up.
    expect(await readsOf(50, work)).toBeLessThan(many / 2);
  });
});

test("however many callers wait, a claim looks at some of them only, and all have their turns", async () => {
  await onOwnDatabase(admin, async ({ url, readsOf }) => {
    const turns = new Turns();
    const served = new Map<string, number>();
    const claim = async (store: PostgresStore) => {
      const shares = { full: [], fullOfEndless: [], turns: turns.order(new Map()) };
      const task = await store.claim({ project: "p", worker: "w", leaseMs: 60_000, shares });
      if (task === undefined) throw new Error("There was nothing to claim.");
      turns.serve(task.caller);
      served.set(task.caller, (served.get(task.caller) ?? 0) + 1);
    };
    // Who has come last comes first in the alphabet.
    await fill(
      url,
      `select n || ' of ' || c, 'caller ' || lpad((${waiting} - c)::text, 6, '0'), 'queued', null
       from generate_series(1, ${waiting}) as c, generate_series(1, 4) as n`,
    );
    expect(await readsOf(50, claim)).toBeLessThan(600);
    await withStore(url, async (store) => {
      for (let n = 0; n < 2 * waiting; n++) await claim(store);
    });
    expect([served.size, Math.max(...served.values())]).toEqual([waiting, expect.toSatisfy((most) => most <= 3)]);
  });
});

test("however many tasks are held, only those of workers that were not heard of are judged", async () => {
  await onOwnDatabase(admin, async ({ url, readsOf }) => {
    await fill(url, "select n::text, 'ada', 'working', 'alive ' || n % 5 from generate_series(1, 2000) as n");
    await withClient(url, (client) =>
      client.query("insert into meanwhile.workers select distinct worker, 1e15::bigint from meanwhile.tasks"),
    );
    expect(await readsOf(20, (store) => store.interrupt())).toBeLessThan(30);
    await fill(
      url,
      "select n::text, 'ada', 'working', case when n = 3000 then 'gone' else 'silent' end from generate_series(3000, 3001) as n",
    );
    await withClient(url, (client) => client.query("insert into meanwhile.workers values ('silent', 1)"));
    await withStore(url, async (store) => {
      expect((await store.interrupt()).toSorted()).toEqual(["3000", "3001"]);
      expect((await store.workers()).toSorted()).toEqual([0, 1, 2, 3, 4].map((n) => `alive ${n}`));
      await store.sweep();
    });
    const known = () =>
      withClient(url, (client) => client.query("select count(*)::int as count from meanwhile.workers")).then(
        ({ rows }) => rows[0]?.count,
      );
    expect(await known()).toBe(5);
    // Who keeps leases says so.
    await withStore(url, async (store) => {
      const stop = store.keepLeases("new", 30_000, 10);
      await waitFor(async () => (await known()) === 6);
      await stop();
    });
  });
});
