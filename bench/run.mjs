// npm run bench [-- --quick] [--markdown] [--only stdio|http|task-get|sessions|start|help|tasks|completion|front|pack|pack-search]
// Measures Meanwhile and its peers side by side and prints a table, and one each for tasks, completion, the front and the pack. A missed goal is reported; only what breaks fails.
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { measureCalls, measureProgram, openHttp, openStdio } from "./client.mjs";
import { createRandom, median, Results, sections, toMarkdown, toTable, toText } from "./report.mjs";
import { programs, servers } from "./servers.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));
const { values: options } = parseArgs({
  options: { quick: { type: "boolean" }, markdown: { type: "boolean" }, only: { type: "string" } },
});
/** Measured by programs of their own, with a table each, in the same run. */
const programsToo = ["tasks", "completion", "front", "pack", "pack-search"];
const known = [...sections, ...programsToo];
if (options.only !== undefined && !known.includes(options.only)) throw new Error(`--only takes one of ${known.join(", ")}, not ${options.only}.`);

/** How many calls a slice makes: before it counts, one at a time, and many at once. `turns` is how often everybody gets one. */
const calls = { stdio: { warmUp: 8_000, leadIn: 20, one: 60, many: 1_200 }, http: { warmUp: 1_000, leadIn: 10, one: 40, many: 160 } };
/** tasks/get is asked by this many at once. */
const tasksInFlight = 64;
const size = options.quick ? { rounds: 1, turns: 5, starts: 2, programs: 3 } : { rounds: 5, turns: 10, starts: 2, programs: 4 };
/** One call at a time is at the mercy of where the scheduler puts client and server: it gets more, shorter slices. */
const slicesOfOne = 3;

checkNode();
prepare();
const scratch = mkdtempSync(path.join(os.tmpdir(), "meanwhile-bench-"));
process.on("exit", () => rmSync(scratch, { recursive: true, force: true }));
// The user's own home and config stay out of it, and so do Node's options.
const env = { PATH: process.env.PATH, HOME: scratch, MEANWHILE_HOME: path.join(scratch, "meanwhile") };
const results = new Results();
const random = createRandom(20260728);
const startedAt = performance.now();
const measures = {
  stdio: measureStdio,
  http: () => measureHttp("http", "2026-07-28"),
  "task-get": measureTaskGet,
  sessions: () => measureHttp("sessions", "2025-11-25"),
  start,
  help,
};
let liveTasks;
if (isWanted("start")) await warmCaches();
for (let round = 1; round <= size.rounds; round++) {
  for (const section of sections.filter(isWanted)) {
    note(`round ${round} of ${size.rounds}: ${section}`);
    await measures[section]();
  }
}
if (sections.some(isWanted)) printReport();
for (const section of programsToo.filter(isWanted)) runToo(`${section}.mjs`);

function runToo(file) {
  const flags = [options.quick ? "--quick" : "", options.markdown ? "--markdown" : ""].filter(Boolean);
  const { status } = spawnSync(process.execPath, [path.join(here, file), ...flags], { stdio: ["ignore", 1, 2] });
  if (status !== 0) throw new Error(`bench/${file} ended with ${status}.`);
}

/** The list in another order each time, the same in every run of the bench. */
function shuffled(list) {
  const rest = [...list];
  return list.map(() => rest.splice(Math.floor(random() * rest.length), 1)[0]);
}

/** Opens all clients, warms them up, and lets them take turns in short slices: what disturbs the machine disturbs them all. */
async function compare(section, list, { open, counts, width }) {
  const runs = [];
  try {
    for (const server of list) runs.push({ server, client: await open(server), one: [], many: [], cpuMs: 0 });
    for (const { client } of runs) await measureCalls(client, { count: counts.warmUp, width });
    for (let turn = 0; turn < size.turns; turn++) {
      for (let slice = 0; slice < slicesOfOne; slice++) for (const run of shuffled(runs)) await measureOne(run, counts);
      for (const run of shuffled(runs)) await measureMany(run, counts, width);
    }
    for (const { server, client, one, many, cpuMs } of runs) {
      results.add(`${section}-1`, server.name, median(one));
      results.add(`${section}-${width}`, server.name, median(many));
      results.add(`${section}-cpu`, server.name, (cpuMs * 1000) / (counts.many * size.turns));
      if (section === "stdio") results.add("memory", server.name, client.process.residentMiB());
    }
  } finally {
    for (const { client } of runs) await client.close();
  }
}

async function measureOne({ client, one }, counts) {
  await measureCalls(client, { count: counts.leadIn, width: 1 });
  one.push((await measureCalls(client, { count: counts.one, width: 1 })).callsPerSecond);
}

async function measureMany(run, counts, width) {
  const { callsPerSecond, cpuMs } = await measureCalls(run.client, { count: counts.many, width });
  run.many.push(callsPerSecond);
  run.cpuMs += cpuMs;
}

async function measureStdio() {
  await compare("stdio", servers, { open: (server) => openStdio(server, env), counts: calls.stdio, width: 64 });
}

async function measureHttp(section, revision) {
  const list = servers.filter((server) => server.revisions.includes(revision));
  const open = (server) => openHttp(server, env, { revision, connections: 32 });
  await compare(section, list, { open, counts: calls.http, width: 32 });
}

/** Meanwhile is asked for tasks; the others answer the plain call of the HTTP section, at the same width. */
async function measureTaskGet() {
  const { makeHome, openTaskGet } = await import("./task-get.mjs");
  liveTasks ??= await makeHome();
  const connections = tasksInFlight;
  const list = servers.filter((server) => server.revisions.includes("2026-07-28"));
  const open = (server) =>
    server.name === "Meanwhile" ? openTaskGet(server, env, { ...liveTasks, connections }) : openHttp(server, env, { revision: "2026-07-28", connections });
  await compare("task-get", list, { open, counts: { ...calls.http, many: 5 * tasksInFlight }, width: tasksInFlight });
}

/** From spawn to the answers of initialize and one tools/call. */
async function startOnce(server, startEnv) {
  const begunAt = performance.now();
  const client = await openStdio(server, startEnv);
  await client.process.expect(client.call("first"), "the first call");
  const tookMs = performance.now() - begunAt;
  await client.close();
  return tookMs;
}

function withCache(server) {
  return { ...env, NODE_COMPILE_CACHE: path.join(scratch, "cache", server.name) };
}

/** Code caches are written by a first start; what is measured is every later one. */
async function warmCaches() {
  for (const server of servers) {
    await startOnce(server, env);
    await startOnce(server, withCache(server));
  }
}

async function start() {
  const times = servers.map((server) => ({ server, own: [], cached: [] }));
  for (let turn = 0; turn < size.starts; turn++) {
    for (const { server, own, cached } of shuffled(times)) {
      own.push(await startOnce(server, env));
      cached.push(await startOnce(server, withCache(server)));
    }
  }
  for (const { server, own, cached } of times) {
    results.add("start", server.name, median(own));
    results.add("start-cached", server.name, median(cached));
  }
}

async function help() {
  const times = { node: [], help: [], commandHelp: [] };
  // One turn more than counted: the first finds cold files.
  for (let turn = 0; turn <= size.programs; turn++) {
    for (const [name, { words, expected }] of Object.entries(programs)) {
      const tookMs = await measureProgram(words, { env, cwd: here, expected });
      if (turn > 0) times[name].push(tookMs);
    }
  }
  results.add("node", "Meanwhile", median(times.node));
  results.add("help", "Meanwhile", median(times.help));
  results.add("command-help", "Meanwhile", median(times.commandHelp));
}

function printReport() {
  const table = toTable(results);
  const seconds = Math.round((performance.now() - startedAt) / 1000);
  const rounds = size.rounds === 1 ? "one round" : `median of ${size.rounds} rounds`;
  const about = `Node ${process.versions.node}, ${os.availableParallelism()} cores, ${os.type()}, ${rounds}, ${seconds} s; ratios are Meanwhile's, taken within each round, with the lowest and highest.`;
  const verdict = table.missed.length === 0 ? "Every goal is met." : `Missed: ${table.missed.join("; ")}.`;
  process.stdout.write(`${options.markdown ? toMarkdown(table) : toText(table)}\n\n${about}\n${verdict}\n`);
}

function isWanted(section) {
  return options.only === undefined || options.only === section;
}

function note(text) {
  process.stderr.write(`${text}\n`);
}

function checkNode() {
  const [major, minor] = process.versions.node.split(".").map(Number);
  if (major < 22 || (major === 22 && minor < 18)) throw new Error(`Needs Node 22.18 or newer, this is ${process.versions.node}; \`npm run bench\` brings it.`);
}

/** Builds Meanwhile when that was never done, and installs the peers at the versions that servers/package.json pins. */
function prepare() {
  if (!existsSync(path.join(here, "../dist/bin.js"))) npm(["run", "build", "--silent", "--", "--log-level=error"], path.dirname(here));
  const folder = path.join(here, "servers");
  const { dependencies } = readManifest(folder);
  const isInstalled = ([name, version]) => readManifest(path.join(folder, "node_modules", name))?.version === version;
  if (Object.entries(dependencies).every(isInstalled)) return;
  note("installing the servers to compare with");
  npm(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], folder);
}

function readManifest(folder) {
  const file = path.join(folder, "package.json");
  return existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : undefined;
}

function npm(words, cwd) {
  // Everything goes to stderr: stdout belongs to the table.
  const { status, error } = spawnSync("npm", words, { cwd, stdio: ["ignore", 2, 2] });
  if (error) throw error;
  if (status !== 0) throw new Error(`npm ${words.join(" ")} ended with ${status}.`);
}
