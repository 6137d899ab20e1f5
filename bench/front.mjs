// node bench/front.mjs [--quick] [--markdown]: what stands between a host and the daemon. A front's start beside a bare
// Node that gives back what it reads, the tools it lists without a daemon beside those with one, a call through it
// beside one to `serve --in-process`, and its memory. A missed goal is reported; only what breaks or answers wrongly
// fails.
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { openStdio } from "./client.mjs";
import { median, printTable, Results, toTable } from "./report.mjs";
import { Turns } from "./turns.mjs";

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

const sizes = {
  quick: { rounds: 1, turns: 5, starts: 10, lists: 3 },
  full: { rounds: 5, turns: 10, starts: 20, lists: 5 },
};
/** How many calls a slice makes. */
const calls = { warmUp: 4_000, leadIn: 20, one: 60, many: 1_200 };
const list = "start to the answer of tools/list, no daemon is there";
const warm = { of: "a warm front", most: 1.5 };
const table = {
  columns: ["a bare Node", "in-process", "a warm front", "front"],
  rows: [
    {
      id: "start",
      title: "start to the first byte relayed, a daemon is there",
      unit: "ms",
      goals: [{ of: "a bare Node", most: 1.6 }],
    },
    { id: "list", title: `${list}, from the second start on`, unit: "ms", goals: [warm] },
    { id: "list-busy", title: `${list}, every core busy`, unit: "ms", goals: [warm] },
    { id: "served-1", title: "one call at a time", unit: "calls/s", goals: [{ of: "in-process" }] },
    { id: "served-64", title: "64 in flight", unit: "calls/s", goals: [{ of: "in-process", least: 0.8 }] },
    { id: "served-memory", title: "memory of a front after these calls", unit: "MB", goals: [{ most: 60 }] },
  ],
};

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
  results.add("start", "a bare Node", median(times.node));
  results.add("start", "front", median(times.front));
}

/** From spawn to the list of tools. When it resolves, a daemon has answered a call. */
async function listOnce(env) {
  const begunAt = performance.now();
  const client = await openStdio(front, env);
  const { result } = await client.request("tools/list", {});
  const tookMs = performance.now() - begunAt;
  if (!result?.tools.some(({ name }) => name === "echo_text"))
    throw new Error(`tools/list was answered with ${JSON.stringify(result)}`);
  await client.process.expect(client.call("there"), "the first call");
  await client.close();
  return tookMs;
}

/** Each turn ends the daemon: the first front finds none, and the second the one which that has started. */
async function measureLists(results, row, { size, env }) {
  const times = { cold: [], warm: [] };
  for (let turn = 0; turn < size.lists; turn++) {
    stopDaemons(env);
    times.cold.push(await listOnce(env));
    times.warm.push(await listOnce(env));
  }
  results.add(row, "front", median(times.cold));
  results.add(row, "a warm front", median(times.warm));
}

/** Keeps every core busy while `work` runs. */
async function whileBusy(env, work) {
  const loops = Array.from({ length: os.availableParallelism() }, () =>
    spawn(process.execPath, ["-e", "for (;;);"], { env, stdio: "ignore" }),
  );
  const stopLoops = () => {
    for (const loop of loops) loop.kill();
  };
  process.once("exit", stopLoops);
  try {
    await work();
  } finally {
    process.off("exit", stopLoops);
    stopLoops();
  }
}

function stopDaemons(env) {
  spawnSync(process.execPath, [program, ...project, "daemon", "stop", "--all", "--now"], { env, stdio: "ignore" });
}

async function main() {
  const { values: options } = parseArgs({ options: { quick: { type: "boolean" }, markdown: { type: "boolean" } } });
  const size = options.quick ? sizes.quick : sizes.full;
  const scratch = mkdtempSync(path.join(os.tmpdir(), "meanwhile-bench-front-"));
  const env = { PATH: process.env.PATH, HOME: scratch, MEANWHILE_HOME: path.join(scratch, "home") };
  process.on("exit", () => {
    stopDaemons(env);
    rmSync(scratch, { recursive: true, force: true, maxRetries: 5 });
  });
  const results = new Results();
  const turns = new Turns(results, size);
  const served = [front, inProcess].map((server) => ({
    id: "served",
    name: server.name,
    open: () => openStdio(server, env),
  }));
  const startedAt = performance.now();
  // The daemon that all of them find.
  await startOnce(front.stdio, env);
  for (let round = 1; round <= size.rounds; round++) {
    process.stderr.write(`front, round ${round} of ${size.rounds}\n`);
    await measureStarts(results, size, env);
    await turns.compareCalls(served, { counts: calls, width: 64 });
    await measureLists(results, "list", { size, env });
    await whileBusy(env, () => measureLists(results, "list-busy", { size, env }));
  }
  printTable(toTable(table, results), { ...options, rounds: size.rounds, startedAt });
}

await main();
