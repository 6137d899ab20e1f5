// node bench/completion.mjs [--quick] [--markdown]: what a completion costs over stdio, beside a ping, and what the
// engine needs for a very large schema. A missed goal is reported; only what breaks or answers wrongly fails.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { complete } from "../src/completion/complete.ts";
import { openStdio } from "./client.mjs";
import { median, printTable, Results } from "./report.mjs";

const program = fileURLToPath(new URL("../bin/meanwhile.cjs", import.meta.url));
const enumValues = 1_000;
const properties = 10_000;
/** How much is measured: requests of each kind in a round, in turns with the others. */
const sizes = {
  quick: { rounds: 1, warmUp: 500, requests: 1_000, calls: 200 },
  full: { rounds: 5, warmUp: 1_000, requests: 2_000, calls: 200 },
};

const valueAt = (at) => `value-${String(at).padStart(4, "0")}`;
const nameAt = (at) => `property_${String(at).padStart(5, "0")}`;

/** What is typed, and what must be answered: how many are listed, and how many fit. */
const typed = [
  { id: "all", title: "nothing typed", value: "", listed: 100, total: enumValues },
  { id: "prefix", title: "the beginning of ten", value: "value-042", listed: 10, total: 10 },
  { id: "letters", title: "letters in between", value: "vlu42", listed: 28, total: 28 },
];

const largeSchema = {
  type: "object",
  properties: Object.fromEntries(
    Array.from({ length: properties }, (_, at) => [nameAt(at), { type: "string", enum: ["on", "off"] }]),
  ),
};
const large = [
  { id: "names", requests: [{}, { partial: "property_0123" }], totals: [properties, 10] },
  { id: "value", requests: [{ argument: nameAt(properties - 1), partial: "of" }], totals: [1] },
];

const engine = `the engine on ${properties.toLocaleString("en-US")} properties`;
const rows = [
  ...typed.flatMap(({ id, title }) => [
    {
      id: `${id}-p50`,
      ping: "ping-p50",
      title: `${enumValues.toLocaleString("en-US")} enum values over stdio, ${title}, p50`,
    },
    { id: `${id}-p99`, ping: "ping-p99", title: "the same, p99", ceilingMs: 10 },
  ]),
  { id: "names-p50", title: `${engine}, names, p50`, ceilingMs: 50 },
  { id: "names-p99", title: "the same, p99", ceilingMs: 50 },
  { id: "names-cpu", title: "the same, processor time, p99", ceilingMs: 50 },
  { id: "value-p99", title: `${engine}, the value of one, p99`, ceilingMs: 50 },
];

/** A server with one command, `pick_value`, and requests to it one at a time. */
async function openServer(folder) {
  const commands = path.join(folder, "commands", "pick");
  mkdirSync(commands, { recursive: true });
  const values = JSON.stringify(Array.from({ length: enumValues }, (_, at) => valueAt(at)));
  const lines = ['import { defineCommand } from "meanwhile";', 'import { z } from "zod";', `const values = ${values};`];
  const command =
    'export default defineCommand({ summary: "Pick one", input: z.object({ value: z.enum(values) }), run: (input) => input });';
  writeFileSync(path.join(commands, "value.ts"), `${[...lines, command].join("\n")}\n`);
  const words = [program, "serve", "--in-process", "--no-bundled", "--commands", path.dirname(commands)];
  const env = { PATH: process.env.PATH, HOME: folder, MEANWHILE_HOME: path.join(folder, "home") };
  const client = await openStdio({ stdio: words }, env);
  /** What was answered, and after how many milliseconds. */
  const request = async (method, params) => {
    const sentAt = performance.now();
    const { result, error } = await client.request(method, params);
    const tookMs = performance.now() - sentAt;
    if (error !== undefined) throw new Error(`${method} was answered with ${JSON.stringify(error)}`);
    return { result, tookMs };
  };
  return { request, close: client.close };
}

/** Pings and completions in turn, one at a time: what disturbs the machine disturbs them all. */
async function measureServer(results, { warmUp, requests }, folder) {
  const { request, close } = await openServer(folder);
  const subjects = [
    { id: "ping", times: [], ask: async () => (await request("ping", {})).tookMs },
    ...typed.map(({ id, value, listed, total }) => ({
      id,
      times: [],
      ask: async () => {
        const { result, tookMs } = await request("completion/complete", {
          ref: { type: "ref/prompt", name: "pick_value" },
          argument: { name: "value", value },
        });
        const { completion } = result;
        const isRight = completion.values.length === listed && completion.total === total;
        if (!isRight) throw new Error(`${JSON.stringify(value)} was completed with ${JSON.stringify(completion)}`);
        return tookMs;
      },
    })),
  ];
  try {
    for (let turn = 0; turn < warmUp; turn++) for (const { ask } of subjects) await ask();
    for (let turn = 0; turn < requests; turn++) for (const { ask, times } of subjects) times.push(await ask());
  } finally {
    await close();
  }
  for (const { id, times } of subjects) {
    results.add(`${id}-p50`, "ms", median(times));
    results.add(`${id}-p99`, "ms", percentile(times, 0.99));
  }
}

/** In this process. Processor time is less moved by a busy machine. */
async function measureEngine(results, { calls }) {
  for (const { id, requests, totals } of large) {
    const times = [];
    const cpu = [];
    for (let turn = -10; turn < calls; turn++) {
      const request = requests[Math.abs(turn) % requests.length];
      const startedAt = performance.now();
      const cpuBefore = process.cpuUsage();
      const completion = await complete(largeSchema, request);
      const { user, system } = process.cpuUsage(cpuBefore);
      const tookMs = performance.now() - startedAt;
      if (completion.total !== totals[requests.indexOf(request)])
        throw new Error(`${JSON.stringify(request)} was completed with ${JSON.stringify(completion)}`);
      if (turn < 0) continue;
      times.push(tookMs);
      cpu.push((user + system) / 1000);
    }
    results.add(`${id}-p50`, "ms", median(times));
    results.add(`${id}-p99`, "ms", percentile(times, 0.99));
    results.add(`${id}-cpu`, "ms", percentile(cpu, 0.99));
  }
}

function percentile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.ceil(sorted.length * share) - 1];
}

function toTable(results) {
  const verdicts = rows.map((row) => ({ row, value: results.value(row.id, "ms") }));
  const isMet = ({ row, value }) => value < row.ceilingMs;
  const lines = verdicts.map(({ row, value }) => [
    row.title,
    "ms",
    row.ping === undefined ? "–" : formatMs(results.value(row.ping, "ms")),
    formatMs(value),
    row.ping === undefined ? "–" : formatRatios(results.ratios(row.id, "ms", "ms", row.ping)),
    row.ceilingMs === undefined ? "" : `< ${row.ceilingMs} ms: ${isMet({ row, value }) ? "met" : "MISSED"}`,
  ]);
  const missed = verdicts
    .filter(({ row, value }) => row.ceilingMs !== undefined && !isMet({ row, value }))
    .map(({ row }) => row.title);
  return { head: ["", "unit", "ping", "Meanwhile", "÷ ping", "goals"], lines, missed };
}

/** Rounded up: a goal that is missed by a hair must not look met. */
const formatMs = (ms) => (Math.ceil(ms * 100) / 100).toFixed(2);

function formatRatios(ratios) {
  const middle = formatMs(median(ratios));
  return ratios.length === 1
    ? middle
    : `${middle} (${Math.min(...ratios).toFixed(2)}–${Math.max(...ratios).toFixed(2)})`;
}

async function main() {
  const { values: options } = parseArgs({ options: { quick: { type: "boolean" }, markdown: { type: "boolean" } } });
  const size = options.quick ? sizes.quick : sizes.full;
  const scratch = mkdtempSync(path.join(os.tmpdir(), "meanwhile-bench-completion-"));
  process.on("exit", () => rmSync(scratch, { recursive: true, force: true }));
  const results = new Results();
  const startedAt = performance.now();
  for (let round = 1; round <= size.rounds; round++) {
    process.stderr.write(`completion, round ${round} of ${size.rounds}\n`);
    await measureServer(results, size, path.join(scratch, String(round)));
    await measureEngine(results, size);
  }
  printTable(toTable(results), { ...options, rounds: size.rounds, startedAt });
}

await main();
