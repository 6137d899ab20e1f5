// node bench/wrap.mjs [--quick] [--markdown]: what `meanwhile wrap` costs a call of somebody else's server, beside the
// call without it and beside mcp-proxy. Processor time is that of all processes between the client and the server, the
// server among them. A missed goal is reported; only what breaks or answers wrongly fails.
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { openHttp, openStdio } from "./client.mjs";
import { printTable, Results, toTable } from "./report.mjs";
import { Turns } from "./turns.mjs";

const at = (file) => fileURLToPath(new URL(file, import.meta.url));
const everything = at("../node_modules/@modelcontextprotocol/server-everything/dist/index.js");
const program = at("../bin/meanwhile.cjs");
const proxy = at("servers/node_modules/mcp-proxy/dist/bin/mcp-proxy.mjs");
const upstream = [process.execPath, everything];
const relay = [process.execPath, at("servers/relay.mjs")];
const call = {
  ask: (message) => ({ name: "echo", arguments: { message } }),
  echoed: (_structured, [{ text }]) => text.replace("Echo: ", ""),
};
const width = 16;
const sizes = { quick: { rounds: 1, turns: 8 }, full: { rounds: 3, turns: 12 } };
/** How many calls a slice makes. */
const calls = { warmUp: 4_000, leadIn: 20, one: 60, many: 480 };

/** Each is measured for the rows of all it is compared in; `processes` says whom its processor time belongs to. */
const lanes = [
  { rows: ["wrap", "alone", "http"], name: "direct", processes: 1, stdio: upstream.slice(1) },
  { rows: ["wrap"], name: "bare relays", processes: 3, stdio: [...relay, ...relay, ...upstream].slice(1) },
  { rows: ["alone"], name: "bare relays", processes: 2, stdio: [...relay, ...upstream].slice(1) },
  {
    rows: ["wrap", "alone"],
    name: "mcp-proxy",
    processes: 2,
    stdio: [at("servers/mcp-proxy-stdio.mjs"), ...upstream],
  },
  { rows: ["wrap"], name: "Meanwhile", processes: 3, stdio: [program, "wrap", "--", ...upstream] },
  { rows: ["alone"], name: "Meanwhile", processes: 2, stdio: [program, "wrap", "--in-process", "--", ...upstream] },
  {
    rows: ["http"],
    name: "mcp-proxy",
    processes: 2,
    http: (port) => [proxy, "--host", "127.0.0.1", "--port", port, "--server", "stream", "--", ...upstream],
  },
  {
    rows: ["http"],
    name: "Meanwhile",
    processes: 2,
    http: (port) => [program, "wrap", "--http", "--port", port, "--allow-anonymous", "--", ...upstream],
  },
];

const direct = (bound) => ({ of: "direct", ...bound });
const below = { of: "mcp-proxy", most: 1 };
/** As many processes that only hand on bytes: what they alone cost. */
const relays = { of: "bare relays" };
/** On pipes mcp-proxy is our own program around its proxyServer(); the one that it has serves HTTP. */
const goalsOf = (goal, end) => [goal, below, { ...below, row: `http-${end}`, name: "mcp-proxy's own program" }, relays];
const rowsOf = (id, title, goal) => [
  { id: `${id}-cpu-1`, title: `${title}, CPU a call, one at a time`, unit: "µs", goals: goalsOf(goal, "cpu-1") },
  { id: `${id}-cpu`, title: `${title}, CPU a call, ${width} in flight`, unit: "µs", goals: goalsOf(goal, "cpu") },
  { id: `${id}-p50`, title: `${title}, one call at a time, p50`, unit: "µs", goals: [direct()] },
  { id: `${id}-${width}`, title: `${title}, ${width} in flight`, unit: "calls/s", goals: [direct()] },
];
/** In the rows of HTTP its own program is what stands there. */
const withoutTwice = (row) => ({ ...row, goals: row.goals.filter((goal) => goal.row === undefined) });
const table = {
  columns: ["direct", "bare relays", "mcp-proxy", "Meanwhile"],
  rows: [
    ...rowsOf("wrap", "`wrap`", direct({ most: 2.5 })),
    ...rowsOf("alone", "`wrap --in-process`", direct()),
    ...rowsOf("http", "`wrap --http`", direct({ name: "direct, on stdio" })).map(withoutTwice),
  ],
};

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return String(port);
}

async function open(lane, scratch, at) {
  const mark = `${path.basename(scratch)}-${at}`;
  const env = { ...envOf(scratch, at), BENCH_LANE: mark };
  const client = await (lane.stdio === undefined ? openOverHttp(lane, env) : openStdio({ ...lane, ...call }, env));
  await client.process.expect(client.call("there"), "the first call");
  const found = client.process.countAll(`BENCH_LANE=${mark}`);
  if (found !== lane.processes) throw new Error(`${lane.name} has ${found} processes, not ${lane.processes}.`);
  return client;
}

async function openOverHttp(lane, env) {
  const port = await freePort();
  const server = { ...lane, ...call, http: lane.http(port), url: `http://127.0.0.1:${port}/mcp` };
  return await openHttp(server, env, { revision: "2025-11-25" });
}

/** Each has a home of its own, and so a daemon. */
function envOf(scratch, at) {
  return { PATH: process.env.PATH, HOME: scratch, MEANWHILE_HOME: path.join(scratch, `home-${at}`) };
}

async function main() {
  const { values: options } = parseArgs({ options: { quick: { type: "boolean" }, markdown: { type: "boolean" } } });
  const size = options.quick ? sizes.quick : sizes.full;
  const scratch = mkdtempSync(path.join(os.tmpdir(), "meanwhile-bench-wrap-"));
  const stopDaemons = () => {
    for (const at of lanes.keys())
      spawnSync(process.execPath, [program, "daemon", "stop", "--all", "--now"], {
        env: envOf(scratch, at),
        stdio: "ignore",
      });
  };
  process.on("exit", () => {
    stopDaemons();
    rmSync(scratch, { recursive: true, force: true, maxRetries: 5 });
  });
  const measured = new Results();
  const turns = new Turns(measured, size);
  const list = lanes.map((lane, at) => ({ id: `lane-${at}`, name: lane.name, open: () => open(lane, scratch, at) }));
  const startedAt = performance.now();
  for (let round = 1; round <= size.rounds; round++) {
    process.stderr.write(`wrap, round ${round} of ${size.rounds}\n`);
    await turns.compareCalls(list, { counts: calls, width });
  }
  printTable(toTable(table, byRow(measured)), { ...options, rounds: size.rounds, startedAt });
}

/** The same figures, under the id of every row in which they stand. */
function byRow(measured) {
  const results = new Results();
  for (const [at, { rows, name }] of lanes.entries())
    for (const row of rows)
      for (const end of ["cpu-1", "cpu", "p50", `${width}`])
        for (const value of measured.values(`lane-${at}-${end}`, name) ?? []) results.add(`${row}-${end}`, name, value);
  return results;
}

await main();
