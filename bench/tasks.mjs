// node bench/tasks.mjs [--quick | --smallest] [--markdown] [--growth]: what a durable task costs, beside a bare SQLite
// insert and other task stores; with --growth, what a million ended tasks cost instead. A missed goal is reported; only
// what breaks or answers wrongly fails.
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { InMemoryTaskStore } from "@modelcontextprotocol/sdk/experimental/tasks/stores/in-memory.js";
import Database from "better-sqlite3";
import { median, Results, toMarkdown, toText } from "./report.mjs";
import { runProgram, runTogether } from "./tasks/children.mjs";
import { newTask, openEngine, text } from "./tasks/engine.mjs";
import { measureGrowth } from "./tasks/growth.mjs";
import { openLongList, openSdkList } from "./tasks/lists.mjs";
import { openRedis } from "./tasks/redis.mjs";

const at = (file) => fileURLToPath(new URL(file, import.meta.url));
const processes = 4;
const columns = ["bare SQLite", "SDK v1", "BullMQ", "Meanwhile"];

/** How much is measured. A slice is one turn of one subject; they take turns slice by slice. */
const sizes = {
  /** Shows that it runs; what it measures says nothing. */
  smallest: {
    rounds: 1,
    slices: 1,
    inSlice: 2,
    loopMs: 50,
    list: { short: 10_200, long: 10_300 },
    pages: 2,
    tasks: 50,
    growth: { short: 300, long: 600, asks: 5 },
  },
  quick: {
    rounds: 1,
    slices: 12,
    inSlice: 5,
    loopMs: 1_000,
    list: { short: 20_000, long: 100_000 },
    pages: 20,
    tasks: 1_000,
    growth: { short: 10_000, long: 100_000, asks: 200 },
  },
  full: {
    rounds: 3,
    slices: 30,
    inSlice: 5,
    loopMs: 1_500,
    list: { short: 100_000, long: 1_000_000 },
    pages: 40,
    tasks: 10_000,
    growth: { short: 10_000, long: 1_000_000, asks: 500 },
  },
};

/**
 * `ceiling` and `floor` bound Meanwhile's value, `timesBare` and `ofBare` its ratio to the bare insert of the same
 * round.
 */
function toRows({ list, tasks }) {
  const pages = (count) => count.toLocaleString("en-US");
  const page = (id, title, more) => ({ id, title, unit: "µs", better: "less", goals: { ceiling: 1_000, ...more } });
  const each = `create → claim → complete, ${processes} processes`;
  return [
    {
      id: "create",
      title: "durable create, the store alone, p50",
      unit: "µs",
      better: "less",
      bare: "create",
      goals: { timesBare: 3, ceiling: 2_000 },
    },
    { id: "create-rate", title: "the same, a second", unit: "tasks/s", better: "more", bare: "create-rate" },
    {
      id: "engine",
      title: "durable create, with schema, digest and estimate, p50",
      unit: "µs",
      better: "less",
      bare: "create",
      goals: { timesBare: 3, ceiling: 2_000 },
    },
    {
      id: "result",
      title: "create → result, trivial command, p50",
      unit: "µs",
      better: "less",
      bare: "create",
      goals: { timesBare: 3, ceiling: 5_000 },
    },
    {
      id: "own-1x16",
      title: "create under its maker's claim → complete, one process, 16 in flight",
      unit: "tasks/s",
      better: "more",
      bare: "bare-rate",
      goals: { ofBare: 0.9 },
    },
    {
      id: "own-4x16",
      title: `the same, ${processes} processes, 16 in flight each`,
      unit: "tasks/s",
      better: "more",
      bare: "bare-rate",
      goals: { ofBare: 0.9 },
    },
    {
      id: "own-4x1",
      title: `the same, ${processes} processes, one at a time`,
      unit: "tasks/s",
      better: "more",
      bare: "bare-rate",
      goals: { ofBare: 0.28 },
    },
    {
      id: "loop-1",
      title: `${each}, one at a time`,
      unit: "tasks/s",
      better: "more",
      bare: "bare-rate",
      goals: { ofBare: 0.25 },
    },
    { id: "loop-16", title: `${each}, 16 in flight each`, unit: "tasks/s", better: "more", bare: "bare-rate" },
    page("first-short", `first page of 50 of ${pages(list.short)} tasks, p50`),
    page("first-long", `first page of 50 of ${pages(list.long)} tasks, p50`, { flatTo: "first-short" }),
    page("deep-short", `page in the middle of ${pages(list.short)} tasks, p50`),
    page("deep-long", `page in the middle of ${pages(list.long)} tasks, p50`, { flatTo: "deep-short" }),
    {
      id: "heap",
      title: `heap kept a finished task (of ${pages(tasks)})`,
      unit: "bytes",
      better: "less",
      goals: { ceiling: 1_024 },
    },
    {
      id: "queued",
      title: `memory with ${pages(tasks)} live tasks, 16 of them running`,
      unit: "MB",
      better: "less",
      goals: { ceiling: 300 },
    },
    { id: "working", title: `memory with ${pages(tasks / 5)} tasks running at once`, unit: "MB", better: "less" },
  ];
}

/** How each act costs with few and with many ended tasks, and what clearing them up kept others from. */
async function benchGrowth(size) {
  const { short, long, asks } = size.growth;
  const scratch = mkdtempSync(path.join(os.tmpdir(), "meanwhile-bench-growth-"));
  try {
    const [few, many] = [
      await measureGrowth(path.join(scratch, "few.db"), { count: short, asks }),
      await measureGrowth(path.join(scratch, "many.db"), { count: long, asks }),
    ];
    const titles = [short, long].map((count) => `${count.toLocaleString("en-US")} tasks`);
    const inTurn = ({ p50, p99 }) => `${formatValue(p50)} / ${formatValue(p99)}`;
    const lines = Object.keys(few.rows).map((name) => [name, "µs", inTurn(few.rows[name]), inTurn(many.rows[name])]);
    for (const verb of ["sweep", "prune"]) {
      const row = (title, unit, of) => lines.push([`${verb}, ${title}`, unit, of(few), of(many)]);
      row("tasks removed", "", ({ removals }) => formatValue(removals[verb].removed));
      row("in all", "ms", ({ removals }) => formatValue(removals[verb].tookMs));
      row("longest wait for the lock, elsewhere", "ms", ({ removals }) => formatValue(removals[verb].longestLockMs));
      row("longest stop of the event loop", "ms", ({ removals }) => formatValue(removals[verb].longestBlockMs));
      row("longest log", "MiB", ({ removals }) => formatValue(removals[verb].logBytes / 2 ** 20));
    }
    const also = ({ idle }) => `${formatValue(idle.longestLockMs)} / ${formatValue(idle.longestSyncMs)}`;
    lines.push([
      "beside it: the longest wait with nobody there / the longest bare insert",
      "ms",
      also(few),
      also(many),
    ]);
    const mebibytes = ({ fileBytes }) => fileBytes.map((bytes) => formatValue(bytes / 2 ** 20)).join(" → ");
    lines.push(["file, before and after", "MiB", mebibytes(few), mebibytes(many)]);
    const missed = [
      ...["live", "failed"].filter((what) => many.rows[`list of ${what} tasks, none there`].p50 >= 1_000),
      ...["sweep", "prune"].filter((verb) => many.removals[verb].longestLockMs > 50),
    ].map((what) => `${what}: a status that nothing has < 1,000 µs, no wait for the lock > 50 ms`);
    return { head: ["p50 / p99", "unit", ...titles], lines, missed, notes: [] };
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** Measures everything; gives a table that report.mjs can print, the goals that were missed, and notes. */
async function benchTasks(size) {
  const scratch = mkdtempSync(path.join(os.tmpdir(), "meanwhile-bench-tasks-"));
  // Where memory is the question, waiting for a disk only takes time.
  const fast = mkdtempSync(path.join(existsSync("/dev/shm") ? "/dev/shm" : os.tmpdir(), "meanwhile-bench-tasks-"));
  const removeScratch = () => {
    for (const folder of [scratch, fast]) rmSync(folder, { recursive: true, force: true });
  };
  process.once("exit", removeScratch);
  const results = new Results();
  const redis = size === sizes.smallest ? undefined : await openRedis(path.join(scratch, "redis"));
  try {
    const bullmq = redis && (await openBullmq());
    for (let round = 1; round <= size.rounds; round++) {
      note(`tasks, round ${round} of ${size.rounds}: one process`);
      await measureOne(results, { size, scratch, redis, bullmq, round });
      note(`tasks, round ${round} of ${size.rounds}: ${processes} processes`);
      await measureMany(results, { size, scratch, redis, bullmq, round });
    }
    note("tasks: lists");
    await measureLists(results, { size, scratch });
    note("tasks: memory");
    await measureMemory(results, { size, scratch: fast });
    const about = redis ? `BullMQ ${bullmq.version} on ${redis.about}` : "BullMQ: not run: no Redis";
    return {
      ...toTable(toRows(size), results),
      notes: [`${about}.`, "SDK v1: InMemoryTaskStore, which keeps nothing over a restart; its pages hold 10."],
    };
  } finally {
    await redis?.close();
    removeScratch();
    process.off("exit", removeScratch);
  }
}

/** Creates, and creates with a result, one at a time in this process. */
async function measureOne(results, { size, scratch, redis, bullmq, round }) {
  const bare = openBare(path.join(scratch, `bare-${round}.db`));
  const idle = await openEngine(path.join(scratch, `idle-${round}.db`));
  const busy = await openEngine(path.join(scratch, `busy-${round}.db`));
  const sdk = new InMemoryTaskStore();
  const queues = redis && (await bullmq.openBullmq(redis, `meanwhile-bench-${process.pid}-${round}`, text));
  busy.worker.start();
  try {
    const subjects = [
      { row: "create", column: "bare SQLite", act: () => bare.insert() },
      { row: "create", column: "SDK v1", act: (turn) => createInSdk(sdk, turn) },
      { row: "create", column: "BullMQ", act: queues && (() => queues.create()) },
      { row: "create", column: "Meanwhile", act: (turn) => createInStore(idle.store, turn) },
      // Another input each time: an equal one would be given the task that is there.
      {
        row: "engine",
        column: "Meanwhile",
        act: (turn) => idle.create("echo", `engine ${turn >> 5}`, { text: `${turn} ${text}` }),
      },
      { row: "result", column: "SDK v1", act: (turn) => finishInSdk(sdk, turn) },
      { row: "result", column: "BullMQ", act: queues && (() => queues.createAndWait()) },
      { row: "result", column: "Meanwhile", act: (turn) => finishInEngine(busy, turn) },
    ].filter(({ act }) => act);
    for (const { row, column, p50Us, perSecond } of await takeTurns(subjects, {
      slices: size.slices,
      inSlice: size.inSlice,
    })) {
      results.add(row, column, p50Us);
      if (row === "create") results.add("create-rate", column, perSecond);
    }
  } finally {
    bare.close();
    await idle.close();
    await busy.close();
    sdk.cleanup();
    await queues?.close();
  }
}

/** Lets the subjects take turns, a slice each; what they share, disk and processors, then disturbs them alike. */
async function takeTurns(subjects, { slices, inSlice }) {
  const measured = subjects.map((subject) => ({ ...subject, times: [] }));
  let turn = 0;
  // One slice more than counted: the first finds cold code.
  for (let slice = 0; slice <= slices; slice++) {
    for (const subject of [...measured.slice(slice % measured.length), ...measured.slice(0, slice % measured.length)]) {
      for (let count = 0; count < (subject.inSlice ?? inSlice); count++) {
        const startedAt = performance.now();
        await subject.act(turn++);
        if (slice > 0) subject.times.push(performance.now() - startedAt);
      }
    }
  }
  return measured.map(({ row, column, times }) => {
    const totalMs = times.reduce((sum, time) => sum + time, 0);
    return { row, column, p50Us: median(times) * 1_000, perSecond: (times.length / totalMs) * 1_000 };
  });
}

/** The least that a durable row costs: one insert, one commit that has reached the disk. */
function openBare(file) {
  const db = new Database(file);
  db.pragma("journal_mode = WAL");
  db.pragma("synchronous = FULL");
  db.exec("create table rows (id text primary key, body text not null) strict");
  const insert = db.prepare("insert into rows (id, body) values (?, ?)");
  return { insert: () => insert.run(crypto.randomUUID(), text), close: () => db.close() };
}

async function createInStore(store, turn) {
  // A caller may have a hundred live tasks.
  const { kind } = await store.create(newTask(`store ${turn >> 5}`), { joinsEqual: false, maxLive: 100 });
  if (kind !== "created") throw new Error(`create gave ${kind}`);
}

async function finishInEngine(tasks, turn) {
  const input = { text: `${turn} ${text}` };
  const ended = await tasks.wait(await tasks.create("echo", "bench", input));
  if (ended.outcome?.data?.text !== input.text) throw new Error(`a task ended as ${ended.status}`);
}

async function createInSdk(store, turn) {
  const request = { method: "tools/call", params: { name: "echo", arguments: { text } } };
  return await store.createTask({ ttl: 86_400_000 }, turn, request, "bench");
}

async function finishInSdk(store, turn) {
  const { taskId } = await createInSdk(store, turn);
  await store.storeTaskResult(taskId, "completed", { content: [{ type: "text", text }] }, "bench");
  const result = await store.getTaskResult(taskId, "bench");
  if (result.content[0].text !== text) throw new Error("the SDK's store gave back something else");
}

/** Four processes on one file, or one Redis. Counted in the database afterwards. */
async function measureMany(results, { size, scratch, redis, bullmq, round }) {
  // Before and after, so that what else the disk does counts for both.
  const rates = [insertFor(path.join(scratch, `bare-before-${round}.db`), size.loopMs)];
  const loop = async (id, together, ...words) => {
    const file = path.join(scratch, `${id}-${round}.db`);
    await (await openEngine(file)).close();
    await runTogether(at("tasks/loop.mjs"), [file, ...words], { processes: together, forMs: size.loopMs });
    results.add(id, "Meanwhile", toRate(countEnded(file)));
  };
  await loop("own-1x16", 1, "16", "own");
  await loop("own-4x16", processes, "16", "own");
  await loop("own-4x1", processes, "1", "own");
  for (const lanes of [1, 16]) await loop(`loop-${lanes}`, processes, String(lanes), "queued");
  rates.push(insertFor(path.join(scratch, `bare-after-${round}.db`), size.loopMs));
  results.add("bare-rate", "bare SQLite", (rates[0] + rates[1]) / 2);
  for (const lanes of [1, 16]) {
    if (!redis) continue;
    const name = `meanwhile-bench-${process.pid}-${round}-${lanes}`;
    const words = [redis.host, String(redis.port), name, String(lanes), String(text.length)];
    await runTogether(at("peers/loop.mjs"), words, { processes, forMs: size.loopMs });
    results.add(`loop-${lanes}`, "BullMQ", toRate(await bullmq.countCompleted(redis, name)));
  }
}

/** Bare inserts a second of one process that does nothing else. */
function insertFor(file, forMs) {
  const bare = openBare(file);
  const startedAt = performance.now();
  let completed = 0;
  for (; performance.now() - startedAt < forMs; completed++) bare.insert();
  const tookMs = performance.now() - startedAt;
  bare.close();
  return toRate({ completed, tookMs });
}

const toRate = ({ completed, tookMs }) => (completed / tookMs) * 1_000;

/** Every task must have ended once, with its whole result. */
function countEnded(file) {
  const db = new Database(file, { readonly: true });
  const counted = db.prepare(`
    select count(*) as made, max(finished_at) - min(created_at) as tookMs,
           sum(status = 'completed' and attempts = 1 and fence = 1 and length(outcome ->> '$.data.text') = ?) as completed
    from tasks left join outcomes using (number)`);
  const { made, completed, tookMs } = counted.get(text.length);
  db.close();
  if (made !== completed)
    throw new Error(`${made} tasks were made by ${processes} processes, and ${completed} completed as they should`);
  return { completed, tookMs };
}

async function measureLists(results, { size, scratch }) {
  const { short, long } = size.list;
  const lists = {
    short: await openLongList(path.join(scratch, "short.db"), short),
    long: await openLongList(path.join(scratch, "long.db"), long),
  };
  const sdk = await openSdkList(short);
  const subjects = ["first", "deep"].flatMap((place) => [
    // Some hundred times slower, so it is asked less often.
    { row: `${place}-short`, column: "SDK v1", act: (turn) => sdk[place](turn), inSlice: 3 },
    { row: `${place}-short`, column: "Meanwhile", act: (turn) => lists.short[place](turn) },
    { row: `${place}-long`, column: "Meanwhile", act: (turn) => lists.long[place](turn) },
  ]);
  for (let round = 0; round < size.rounds; round++) {
    for (const { row, column, p50Us } of await takeTurns(subjects, { slices: 3, inSlice: size.pages }))
      results.add(row, column, p50Us);
  }
  sdk.close();
  await lists.short.close();
  await lists.long.close();
}

async function measureMemory(results, { size, scratch }) {
  const run = ([kind, count]) =>
    runProgram(["--expose-gc", at("tasks/memory.mjs"), path.join(scratch, `${kind}.db`), kind, String(count)]);
  // Speed is not the question here, so they may disturb each other.
  const [finished, queued, working] = await Promise.all(
    Object.entries({ finished: size.tasks, queued: size.tasks, working: size.tasks / 5 }).map(run),
  );
  results.add("heap", "Meanwhile", finished.bytesPerTask);
  results.add("queued", "Meanwhile", queued.residentBytes / 1_000_000);
  results.add("working", "Meanwhile", working.residentBytes / 1_000_000);
}

function toTable(rows, results) {
  const verdicts = rows.map((row) => ({ row, goals: judge(row, results) }));
  const lines = verdicts.map(({ row, goals }) => [
    row.title,
    row.unit,
    ...columns.map((column) => formatValue(cellOf(row, column, results))),
    formatRatio(ratioToBare(row, results), row.better),
    goals.map((goal) => `${goal.text}: ${goal.isMet ? "met" : "MISSED"}`).join("; "),
  ]);
  const missed = verdicts.flatMap(({ row, goals }) =>
    goals.filter((goal) => !goal.isMet).map((goal) => `${row.title}: ${goal.text}`),
  );
  return { head: ["", "unit", ...columns, "÷ bare", "goals"], lines, missed };
}

function cellOf(row, column, results) {
  return results.value(column === "bare SQLite" ? row.bare : row.id, column);
}

function ratioToBare(row, results) {
  return row.bare && results.ratio(row.id, "Meanwhile", "bare SQLite", row.bare);
}

function judge(row, results) {
  const { ceiling, floor, timesBare, ofBare, flatTo } = row.goals ?? {};
  const value = results.value(row.id, "Meanwhile");
  const ratio = ratioToBare(row, results);
  const goals = [];
  if (timesBare !== undefined) goals.push({ text: `≤ ${timesBare} × bare`, isMet: ratio <= timesBare });
  if (ofBare !== undefined) goals.push({ text: `≥ ${ofBare} of bare`, isMet: ratio >= ofBare });
  if (ceiling !== undefined) goals.push({ text: `< ${formatValue(ceiling)} ${row.unit}`, isMet: value < ceiling });
  if (floor !== undefined) goals.push({ text: `≥ ${formatValue(floor)} ${row.unit}`, isMet: value >= floor });
  if (flatTo !== undefined) {
    const growth = results.ratio(row.id, "Meanwhile", "Meanwhile", flatTo);
    goals.push({
      text: `flat (≤ 1.5 × the shorter list), is ${formatRatio(growth, row.better)}`,
      isMet: growth <= 1.5,
    });
  }
  return goals;
}

/** Rounded to the worse side: a goal that is missed by a hair must not look met. */
function formatRatio(ratio, better) {
  if (ratio === undefined) return "–";
  return ((better === "more" ? Math.floor(ratio * 100) : Math.ceil(ratio * 100)) / 100).toFixed(2);
}

const formatValue = (value) => (value === undefined ? "–" : Math.round(value).toLocaleString("en-US"));

async function openBullmq() {
  const { dependencies } = JSON.parse(readFileSync(at("package.json"), "utf8"));
  return { ...(await import("./peers/bullmq.mjs")), version: dependencies.bullmq };
}

function note(words) {
  process.stderr.write(`${words}\n`);
}

async function main() {
  const isSaid = { type: "boolean" };
  const { values: options } = parseArgs({
    options: { quick: isSaid, smallest: isSaid, markdown: isSaid, growth: isSaid },
  });
  const startedAt = performance.now();
  const size = options.smallest ? sizes.smallest : options.quick ? sizes.quick : sizes.full;
  const table = await (options.growth ? benchGrowth(size) : benchTasks(size));
  const seconds = Math.round((performance.now() - startedAt) / 1000);
  const about = `Node ${process.versions.node}, ${os.availableParallelism()} cores, ${os.type()}, ${seconds} s; medians of rounds, ratios taken within each round.`;
  const verdict = table.missed.length === 0 ? "Every goal is met." : `Missed: ${table.missed.join("; ")}.`;
  process.stdout.write(
    `${options.markdown ? toMarkdown(table) : toText(table)}\n\n${[about, ...table.notes, verdict].join("\n")}\n`,
  );
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
