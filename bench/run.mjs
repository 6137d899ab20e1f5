// npm run bench [-- --quick] [--markdown] [--before <checkout>] [--only <section>]
// Sections: stdio, http, task-get, sessions, start, help, own, embed, tasks, tasks-postgres, growth, completion, front, auth, wrap, pack, pack-search.
// Measures Meanwhile and its peers side by side, and Meanwhile beside itself, and prints a table of each. A missed goal
// is reported; only what breaks fails.
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { measureProgram, openHttp, openStdio } from "./client.mjs";
import { createOwn } from "./own.mjs";
import { median, printTable, Results, toTable } from "./report.mjs";
import { embedTable, ownTable, peerTable, sections } from "./rows.mjs";
import { bareServer, embedded, programs, servers } from "./servers.mjs";
import { Turns } from "./turns.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));
const { values: options } = parseArgs({
  options: {
    quick: { type: "boolean" },
    markdown: { type: "boolean" },
    only: { type: "string" },
    before: { type: "string" },
  },
});
/** Measured by programs of their own, with a table each, in the same run. */
const programsToo = {
  start: ["start.mjs"],
  tasks: ["tasks.mjs"],
  "tasks-postgres": ["tasks-postgres.mjs"],
  growth: ["tasks.mjs", "--growth"],
  completion: ["completion.mjs"],
  front: ["front.mjs"],
  auth: ["auth.mjs"],
  wrap: ["wrap.mjs"],
  pack: ["pack.mjs"],
  "pack-search": ["pack-search.mjs"],
};
const known = [...new Set([...sections, ...Object.keys(programsToo)])];
if (options.only !== undefined && !known.includes(options.only))
  throw new Error(`--only takes one of ${known.join(", ")}, not ${options.only}.`);
if (options.before !== undefined && !existsSync(path.join(options.before, "dist/bin.js")))
  throw new Error(`--before takes a built checkout, not ${options.before}.`);

/**
 * How many calls a slice makes: before it counts, one at a time, and many at once. `turns` is how often everybody gets
 * one.
 */
const calls = {
  stdio: { warmUp: 8_000, leadIn: 20, one: 60, many: 1_200 },
  http: { warmUp: 3_000, leadIn: 10, one: 40, many: 320 },
};
/** tasks/get is asked by this many at once. */
const tasksInFlight = 64;
const size = options.quick
  ? { rounds: 1, turns: 5, starts: 2, programs: 3 }
  : { rounds: 5, turns: 10, starts: 2, programs: 4 };

checkNode();
const scratch = mkdtempSync(path.join(os.tmpdir(), "meanwhile-bench-"));
process.on("exit", () => rmSync(scratch, { recursive: true, force: true }));
// The user's own home and config stay out of it, and so do Node's options.
const env = { PATH: process.env.PATH, HOME: scratch };
const results = new Results();
const turns = new Turns(results, size);
const startedAt = performance.now();
const measures = {
  stdio: measureStdio,
  http: () => measureHttp("http", "2026-07-28", [bareServer]),
  "task-get": measureTaskGet,
  sessions: () => measureHttp("sessions", "2025-11-25"),
  start,
  help,
  embed: measureEmbedded,
  own:
    isWanted("own") &&
    createOwn({
      folder: path.join(scratch, "projects"),
      before: options.before && path.resolve(options.before),
      turns,
      calls,
      envOf,
    }),
};
let liveTasks;
for (let round = 1; round <= size.rounds; round++) {
  for (const section of sections.filter(isWanted)) {
    note(`round ${round} of ${size.rounds}: ${section}`);
    await measures[section]();
  }
}
for (const table of [peerTable, ownTable, embedTable].map((one) => toTable(one, results)))
  if (table.lines.length > 0) printTable(table, { ...options, rounds: size.rounds, startedAt });
for (const [section, words] of Object.entries(programsToo)) if (isWanted(section)) runToo(...words);

function runToo(file, ...words) {
  const flags = [options.quick ? "--quick" : "", options.markdown ? "--markdown" : ""].filter(Boolean);
  const { status } = spawnSync(process.execPath, [path.join(here, file), ...words, ...flags], {
    stdio: ["ignore", 1, 2],
  });
  if (status !== 0) throw new Error(`bench/${file} ended with ${status}.`);
}

/** Each has a home of its own: an older Meanwhile does not know what a newer one keeps. */
function envOf({ name }) {
  return { ...env, MEANWHILE_HOME: path.join(scratch, "homes", name) };
}

async function measureStdio() {
  const list = servers.map((server) => ({
    id: "stdio",
    name: server.name,
    open: () => openStdio(server, envOf(server)),
  }));
  await turns.compareCalls(list, { counts: calls.stdio, width: 64 });
}

/** Each server beside itself with one line around it. */
async function measureEmbedded() {
  const pairs = embedded.stdio.flatMap(({ base, bare, durable }) => [
    { id: `embed-${base.replace("sdk-", "")}`, name: "as it is", server: bare },
    { id: `embed-${base.replace("sdk-", "")}`, name: "with Meanwhile", server: durable },
  ]);
  const onStdio = pairs.map((one) => ({ ...one, open: () => openStdio(one.server, envOf(one)) }));
  await turns.compareCalls(onStdio, { counts: { ...calls.stdio, warmUp: 4_000 }, width: 64 });
  const { bare, created } = embedded.hono;
  const open = (server) => openHttp(server, env, { revision: "2026-07-28" });
  const inHono = [
    { id: "embed-hono", name: "as it is", open: () => open(bare) },
    { id: "embed-hono", name: "with Meanwhile", open: () => open(created) },
  ];
  await turns.compareCalls(inHono, { counts: calls.http, width: 32 });
}

async function measureHttp(id, revision, others = []) {
  const asked = [...servers.filter((server) => server.revisions.includes(revision)), ...others];
  const list = asked.map((server) => ({
    id,
    name: server.name,
    open: () => openHttp(server, envOf(server), { revision }),
  }));
  await turns.compareCalls(list, { counts: calls.http, width: 32 });
}

/** Meanwhile is asked for tasks; the others answer the plain call of the HTTP section, at the same width. */
async function measureTaskGet() {
  const { makeHome, openTaskGet } = await import("./task-get.mjs");
  liveTasks ??= await makeHome();
  const open = (server) =>
    server.name === "Meanwhile"
      ? openTaskGet(server, env, liveTasks)
      : openHttp(server, env, { revision: "2026-07-28" });
  const asked = servers.filter((server) => server.revisions.includes("2026-07-28"));
  const list = asked.map((server) => ({ id: "task-get", name: server.name, open: () => open(server) }));
  await turns.compareCalls(list, { counts: { ...calls.http, many: 5 * tasksInFlight }, width: tasksInFlight });
}

async function start() {
  const withCache = (server) => ({ ...envOf(server), NODE_COMPILE_CACHE: path.join(scratch, "cache", server.name) });
  await turns.compareStarts(
    servers.flatMap((server) => [
      { id: "start", server, env: envOf(server) },
      { id: "start-cached", server, env: withCache(server) },
    ]),
  );
}

async function help() {
  const times = { node: [], help: [], commandHelp: [] };
  // One turn more than counted: the first finds cold files.
  for (let turn = 0; turn <= size.programs; turn++) {
    for (const [name, { words, expected }] of Object.entries(programs)) {
      const tookMs = await measureProgram(words, { env: envOf({ name: "Meanwhile" }), cwd: here, expected });
      if (turn > 0) times[name].push(tookMs);
    }
  }
  for (const row of ["help", "command-help"]) results.add(row, "bare Node", median(times.node));
  results.add("help", "Meanwhile", median(times.help));
  results.add("command-help", "Meanwhile", median(times.commandHelp));
}

function isWanted(section) {
  return (
    options.only === undefined || section === options.only || (section === "tasks-postgres" && options.only === "tasks")
  );
}

function note(text) {
  process.stderr.write(`${text}\n`);
}

function checkNode() {
  const [major, minor] = process.versions.node.split(".").map(Number);
  if (major < 22 || (major === 22 && minor < 18))
    throw new Error(`Needs Node 22.18 or newer, this is ${process.versions.node}; \`npm run bench\` brings it.`);
}
