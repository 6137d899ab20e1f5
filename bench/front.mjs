// node bench/front.mjs [--quick] [--markdown]: what stands between a host and the daemon. A front's start beside a bare Node that gives back what it
// reads, a call through it beside one to `serve --in-process`, and its memory. A missed goal is reported; only what breaks or answers wrongly fails.
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { measureCalls, openStdio } from "./client.mjs";
import { median, Results, toMarkdown, toText } from "./report.mjs";

const at = (file) => fileURLToPath(new URL(file, import.meta.url));
const program = at("../bin/meanwhile.cjs");
const project = ["--no-bundled", "--commands", at("commands")];
const echoed = (structured) => structured.data?.text;
const front = { name: "front", stdio: [program, "serve", ...project], echoed };
const inProcess = { name: "in-process", stdio: [program, "serve", "--in-process", ...project], echoed };
const bareNode = ["-e", 'process.stdin.once("data", (data) => process.stdout.write(data))'];
const hello = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "bench", version: "1" } },
};

const sizes = { quick: { rounds: 1, starts: 10, calls: 1_000 }, full: { rounds: 5, starts: 20, calls: 3_000 } };
const rows = [
  { id: "start", title: "start to the first byte relayed, a daemon is there", unit: "ms", base: "a bare Node", most: { ratio: 1.6 } },
  { id: "one", title: "one call at a time", unit: "calls/s", base: "in-process" },
  { id: "many", title: "64 in flight", unit: "calls/s", base: "in-process" },
  { id: "memory", title: "memory of a front after these calls", unit: "MB", base: undefined, most: { value: 60 } },
];

/** From spawn to the first byte of an answer. */
async function startOnce(words, env) {
  const begunAt = performance.now();
  const child = spawn(process.execPath, words, { env, stdio: ["pipe", "pipe", "inherit"] });
  child.stdin.write(`${JSON.stringify(hello)}\n`);
  const exited = new Promise((resolve) => child.once("close", resolve));
  const tookMs = await new Promise((resolve, reject) => {
    child.stdout.once("data", () => resolve(performance.now() - begunAt));
    void exited.then((code) => reject(new Error(`${words.join(" ")} ended with ${code} and said nothing.`)));
  });
  child.stdin.end();
  await exited;
  return tookMs;
}

async function measureStarts(results, size, env) {
  const times = { node: [], front: [] };
  // One turn more than counted: the first finds cold files.
  for (let turn = 0; turn <= size.starts; turn++) {
    const took = { node: await startOnce(bareNode, env), front: await startOnce(front.stdio, env) };
    if (turn > 0) for (const name of ["node", "front"]) times[name].push(took[name]);
  }
  results.add("start", "base", median(times.node));
  results.add("start", "front", median(times.front));
}

async function measureServed(results, size, env) {
  const clients = { front: await openStdio(front, env), base: await openStdio(inProcess, env) };
  try {
    for (const client of Object.values(clients)) await measureCalls(client, { count: size.calls, width: 64 });
    for (const [name, client] of Object.entries(clients))
      results.add("one", name, (await measureCalls(client, { count: size.calls, width: 1 })).callsPerSecond);
    for (const [name, client] of Object.entries(clients))
      results.add("many", name, (await measureCalls(client, { count: size.calls, width: 64 })).callsPerSecond);
    results.add("memory", "front", clients.front.process.residentMiB() * 1.048576);
  } finally {
    for (const client of Object.values(clients)) await client.close();
  }
}

function toTable(results) {
  const judged = rows.map((row) => {
    const value = results.value(row.id, "front");
    const ratios = results.ratios(row.id, "front", "base");
    const { ratio, value: limit } = row.most ?? {};
    const isMet = (ratio === undefined || median(ratios) <= ratio) && (limit === undefined || value < limit);
    const goal = ratio !== undefined ? `≤ ${ratio} × ${row.base}` : limit !== undefined ? `< ${limit} ${row.unit}` : undefined;
    return { row, value, ratios, isMet, goal };
  });
  const lines = judged.map(({ row, value, ratios, isMet, goal }) => [
    row.title,
    row.unit,
    row.base === undefined ? "–" : `${format(results.value(row.id, "base"))} (${row.base})`,
    format(value),
    ratios === undefined ? "–" : formatRatios(ratios),
    goal === undefined ? "" : `${goal}: ${isMet ? "met" : "MISSED"}`,
  ]);
  return { head: ["", "unit", "beside", "front", "ratio", "goals"], lines, missed: judged.filter(({ isMet }) => !isMet).map(({ row }) => row.title) };
}

const format = (value) => Math.round(value).toLocaleString("en-US");

function formatRatios(ratios) {
  const middle = median(ratios).toFixed(2);
  return ratios.length === 1 ? middle : `${middle} (${Math.min(...ratios).toFixed(2)}–${Math.max(...ratios).toFixed(2)})`;
}

async function main() {
  const { values: options } = parseArgs({ options: { quick: { type: "boolean" }, markdown: { type: "boolean" } } });
  const size = options.quick ? sizes.quick : sizes.full;
  const scratch = mkdtempSync(path.join(os.tmpdir(), "meanwhile-bench-front-"));
  const env = { PATH: process.env.PATH, HOME: scratch, MEANWHILE_HOME: path.join(scratch, "home") };
  process.on("exit", () => {
    spawnSync(process.execPath, [program, ...project, "daemon", "stop", "--all", "--now"], { env, stdio: "ignore" });
    rmSync(scratch, { recursive: true, force: true, maxRetries: 5 });
  });
  const results = new Results();
  const startedAt = performance.now();
  // The daemon that all of them find.
  await startOnce(front.stdio, env);
  for (let round = 1; round <= size.rounds; round++) {
    process.stderr.write(`front, round ${round} of ${size.rounds}\n`);
    await measureStarts(results, size, env);
    await measureServed(results, size, env);
  }
  const table = toTable(results);
  const seconds = Math.round((performance.now() - startedAt) / 1000);
  const about = `Node ${process.versions.node}, ${os.availableParallelism()} cores, ${os.type()}, load ${os.loadavg()[0].toFixed(1)}, ${seconds} s; medians of rounds, ratios taken within each round.`;
  const verdict = table.missed.length === 0 ? "Every goal is met." : `Missed: ${table.missed.join("; ")}.`;
  process.stdout.write(`${options.markdown ? toMarkdown(table) : toText(table)}\n\n${about}\n${verdict}\n`);
}

await main();
