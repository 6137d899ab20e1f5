// What is too heavy for every test run: the daemon under a crowd, over a minute, and stuck.
//   npm run check:daemon                      all of it, about three minutes
//   node scripts/check-daemon.mjs crowd       one of: minute, crowd, crash, stuck
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createConnection } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";

const repository = path.resolve(import.meta.dirname, "..");
const executable = path.join(repository, "bin/meanwhile.cjs");
const hostProgram = path.join(repository, "test/fixtures/daemon/host.ts");
const scratch = mkdtempSync(path.join(tmpdir(), "meanwhile-check-"));
const commands = path.join(scratch, "commands");
const words = ["--no-bundled", "--commands", commands];
const revisions = ["2025-11-25", "2026-07-28"];

const checks = { minute, crowd, crash, stuck };
const wanted = process.argv.slice(2);
for (const name of wanted)
  if (!Object.hasOwn(checks, name))
    throw new Error(`There is no check ${name}; there are ${Object.keys(checks).join(", ")}.`);

writeCommands();
const children = new Set();
process.on("exit", () => {
  for (const child of children) child.kill("SIGKILL");
  for (const home of homes()) for (const { pid } of daemonsOf(home)) kill(pid);
  rmSync(scratch, { recursive: true, force: true, maxRetries: 10 });
});
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(1));

/** A host starts a task of sixty seconds and is killed with its front; another host asks for the result. */
async function minute() {
  const runs = ["v1", "v2"].map(async (sdk) => {
    const home = makeHome(`minute-${sdk}`);
    const traces = path.join(scratch, `minute-${sdk}.txt`);
    const host = startHost(home, sdk, "work_minute", { file: traces, seconds: 60 });
    const { job_id } = (await host.result()).structuredContent.data;
    await until(() => existsSync(traces), "the task to start");
    host.killAll();
    await until(() => linesOf(traces).includes("ended"), "the task to end", 90_000);
    const next = startHost(home, sdk, "task_result", { job_id });
    const { data, success } = (await next.result()).structuredContent;
    next.killAll();
    expect(success === true && data.slept === 60, `the result is there with SDK ${sdk}: ${JSON.stringify(data)}`);
    expect(linesOf(traces).filter((line) => line === "started").length === 1, `it ran once with SDK ${sdk}`);
    expect(daemonsOf(home).length === 1, "one daemon");
  });
  await Promise.all(runs);
  return "tasks of 60 s outlived their hosts and fronts, each with one run (SDK v1 and v2)";
}

/** Two hundred clients that all count their requests from 1, through one daemon. */
async function crowd() {
  const home = makeHome("crowd");
  const [clientCount, callCount, width] = [200, 100_000, 10];
  const fronts = await Promise.all(Array.from({ length: 10 }, (_, at) => openFront(home, revisions[at % 2])));
  const [{ pid, socket }] = daemonsOf(home);
  const straight = await Promise.all(
    Array.from({ length: clientCount - fronts.length }, (_, at) => openSocket(socket, revisions[at % 2])),
  );
  let answered = 0;
  let swapped = 0;
  await Promise.all(
    [...fronts, ...straight].map(async (client, number) => {
      for (let at = 0; at < callCount / clientCount; at += width) {
        const texts = Array.from({ length: width }, (_, of) => `client ${number}, call ${at + of}`);
        const results = await Promise.all(texts.map((text) => client.call("say_back", { text })));
        for (const [of, result] of results.entries()) {
          answered += 1;
          if (result.structuredContent?.data.text !== texts[of]) swapped += 1;
        }
      }
    }),
  );
  expect(answered === callCount && swapped === 0, `${answered} answers, ${swapped} swapped`);
  const memory = `daemon ${residentMiB(pid)} MiB, fronts up to ${Math.max(...fronts.map(({ child }) => residentMiB(child.pid)))} MiB`;
  for (const client of [...fronts, ...straight]) client.close();
  return `${answered} calls of ${clientCount} clients with equal ids, none swapped; ${memory}`;
}

/** The daemon is killed ten times with twenty fronts attached, calls and lists under way. */
async function crash() {
  const home = makeHome("crash");
  const clients = await Promise.all(Array.from({ length: 20 }, (_, at) => openFront(home, revisions[at % 2])));
  const slowest = [];
  let lost = 0;
  for (let round = 1; round <= 10; round++) {
    const traces = path.join(scratch, `crash-${round}.txt`);
    const [{ pid }] = daemonsOf(home);
    const { job_id } = (await clients[round].call("work_safe", { file: traces })).structuredContent.data;
    await until(() => existsSync(traces), "the task to start");
    const calls = clients.map((client) =>
      client.request("tools/call", { name: "work_wait", arguments: { file: `${traces}.call` } }),
    );
    process.kill(pid, "SIGSTOP");
    const lists = clients.map((client) => client.request("tools/list", {}));
    const startedAt = performance.now();
    kill(pid);
    for (const { result } of await Promise.all(lists)) expect(Array.isArray(result?.tools), "every list is answered");
    slowest.push(performance.now() - startedAt);
    for (const { error } of await Promise.all(calls)) {
      expect(error?.code === -32603, "every call is answered with an error");
      lost += 1;
    }
    writeFileSync(`${traces}.go`, "");
    const { structuredContent } = await clients[0].call("task_result", { job_id });
    expect(structuredContent?.data.passed === traces, `the task is not lost: ${JSON.stringify(structuredContent)}`);
    expect(daemonsOf(home).length === 1, "one daemon");
  }
  expect(Math.max(...slowest) < 5_000, `within 5 s each time, not ${slowest.map(Math.round).join(", ")} ms`);
  for (const client of clients) client.close();
  return `20 fronts, 10 crashes: all lists answered within ${Math.round(Math.max(...slowest))} ms, ${lost} calls told that their daemon has ended, no task lost`;
}

/** A daemon that is stopped holds its lock and says nothing: a front says so, and goes. */
async function stuck() {
  const home = makeHome("stuck");
  const first = await openFront(home, revisions[0]);
  const [{ pid }] = daemonsOf(home);
  process.kill(pid, "SIGSTOP");
  const startedAt = performance.now();
  const child = startFront(home);
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (text) => (said += text));
  const code = await new Promise((resolve) => child.on("close", resolve));
  const took = performance.now() - startedAt;
  expect(
    code === 70 &&
      /^✗ Daemon \d+ did not answer within 30 s; `meanwhile daemon stop --now` ends it, or serve with --in-process\.\n$/.test(
        said,
      ),
    `one sentence, exit 70: ${code} ${said}`,
  );
  expect(took < 40_000, `within 40 s, not ${took} ms`);
  process.kill(pid, "SIGCONT");
  const { structuredContent } = await first.call("say_back", { text: "awake" });
  expect(structuredContent?.data.text === "awake", "whoever was connected goes on when it is awake");
  expect(daemonsOf(home).length === 1 && daemonsOf(home)[0].pid === pid, "still the only one");
  first.close();
  return `a stopped daemon was told of after ${Math.round(took / 1000)} s`;
}

function writeCommands() {
  const head =
    'import { appendFileSync, existsSync } from "node:fs";\nimport { setTimeout as sleep } from "node:timers/promises";\nimport { defineCommand } from "meanwhile";\nimport { z } from "zod";\n';
  const gated =
    'async run({ file }, { signal }) { appendFileSync(file, "started\\n"); while (!existsSync(file + ".go")) await sleep(20, undefined, { signal }); return { passed: file }; }';
  const files = {
    "say/back": 'effects: "read", input: z.object({ text: z.string() }), run: ({ text }) => ({ text })',
    "work/minute":
      'long: true, estimate: () => 60, input: z.object({ file: z.string(), seconds: z.number() }), async run({ file, seconds }, { signal }) { appendFileSync(file, "started\\n"); await sleep(seconds * 1000, undefined, { signal }); appendFileSync(file, "ended\\n"); return { slept: seconds }; }',
    "work/safe": `long: true, estimate: () => 3600, idempotent: true, input: z.object({ file: z.string() }), ${gated}`,
    "work/wait": `input: z.object({ file: z.string() }), ${gated}`,
  };
  for (const [name, body] of Object.entries(files)) {
    const file = path.join(commands, `${name}.ts`);
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, `${head}export default defineCommand({ summary: "${name}", ${body} });\n`);
  }
}

function makeHome(name) {
  const home = path.join(scratch, "homes", name);
  mkdirSync(home, { recursive: true, mode: 0o700 });
  return home;
}

function homes() {
  const folder = path.join(scratch, "homes");
  return existsSync(folder) ? readdirSync(folder).map((name) => path.join(folder, name)) : [];
}

function daemonsOf(home) {
  const folder = path.join(home, "run");
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((name) => name.endsWith(".json"))
    .map((name) => JSON.parse(readFileSync(path.join(folder, name), "utf8")));
}

function start(home, args) {
  const child = spawn(process.execPath, args, { cwd: scratch, env: { ...process.env, MEANWHILE_HOME: home } });
  children.add(child);
  child.on("close", () => children.delete(child));
  child.stdin.on("error", () => {});
  return child;
}

function startFront(home) {
  return start(home, [executable, "serve", ...words]);
}

/** A real SDK client in a process of its own. */
function startHost(home, sdk, tool, input) {
  const child = start(home, [
    hostProgram,
    sdk,
    JSON.stringify([executable, "serve", ...words]),
    tool,
    JSON.stringify(input),
  ]);
  let said = "";
  child.stdout.setEncoding("utf8").on("data", (text) => (said += text));
  child.stderr.setEncoding("utf8").on("data", (text) => (said += text));
  const find = () => said.split("\n").find((line) => line.startsWith('{"result":'));
  return {
    async result() {
      await until(
        () => find() !== undefined,
        () => `the host's result, beside ${said}`,
        60_000,
      );
      return JSON.parse(find()).result;
    },
    killAll() {
      const fronts = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, "utf8")
        .trim()
        .split(" ")
        .filter(Boolean)
        .map(Number);
      for (const pid of [...fronts, child.pid]) kill(pid);
    },
  };
}

async function openFront(home, revision) {
  const child = startFront(home);
  const client = new Client(child.stdin, child.stdout, revision);
  await client.begin();
  return Object.assign(client, { child, close: () => child.stdin.end() });
}

async function openSocket(file, revision) {
  const socket = createConnection(file);
  const client = new Client(socket, socket, revision);
  await client.begin();
  return Object.assign(client, { close: () => socket.destroy() });
}

/** JSON-RPC by hand; every client counts from 1. */
class Client {
  #output;
  #revision;
  #lastId = 0;
  #waiting = new Map();

  constructor(output, input, revision) {
    this.#output = output;
    this.#revision = revision;
    let rest = "";
    input.setEncoding("utf8").on("data", (text) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop();
      for (const line of lines) this.#receive(JSON.parse(line));
    });
  }

  #receive(message) {
    if (message.method !== undefined) return;
    const resolve = this.#waiting.get(message.id);
    expect(resolve !== undefined, `an answer that nobody waits for: ${JSON.stringify(message).slice(0, 200)}`);
    this.#waiting.delete(message.id);
    resolve(message);
  }

  async begin() {
    if (this.#revision === "2026-07-28") return;
    await this.request("initialize", {
      protocolVersion: this.#revision,
      capabilities: {},
      clientInfo: { name: "check", version: "1" },
    });
    this.#output.write(`${JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" })}\n`);
  }

  request(method, params) {
    const id = ++this.#lastId;
    const _meta = {
      "io.modelcontextprotocol/protocolVersion": this.#revision,
      "io.modelcontextprotocol/clientCapabilities": {},
      "io.modelcontextprotocol/clientInfo": { name: "check", version: "1" },
    };
    return new Promise((resolve) => {
      this.#waiting.set(id, resolve);
      this.#output.write(
        `${JSON.stringify({ jsonrpc: "2.0", id, method, params: this.#revision === "2026-07-28" ? { ...params, _meta } : params })}\n`,
      );
    });
  }

  async call(name, input) {
    const { result, error } = await this.request("tools/call", { name, arguments: input });
    if (error !== undefined) throw new Error(`${name} was answered with ${error.message}`);
    return result;
  }
}

function linesOf(file) {
  return existsSync(file) ? readFileSync(file, "utf8").split("\n") : [];
}

function residentMiB(pid) {
  return Math.round(Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024);
}

function kill(pid) {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It is gone.
  }
}

async function until(isSo, what, limitMs = 30_000) {
  for (const end = performance.now() + limitMs; !isSo(); ) {
    if (performance.now() > end) throw new Error(`waited in vain for ${typeof what === "string" ? what : what()}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

function expect(isTrue, what) {
  if (!isTrue) throw new Error(what);
}

function seconds(since) {
  return `${((performance.now() - since) / 1000).toFixed(1)} s`;
}

let failed = 0;
for (const [name, check] of Object.entries(checks)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue;
  const startedAt = performance.now();
  try {
    console.log(`✓ ${name}: ${await check()} (${seconds(startedAt)})`);
  } catch (error) {
    failed += 1;
    console.log(`✗ ${name}: ${error.stack} (${seconds(startedAt)})`);
  }
}
process.exit(failed === 0 ? 0 : 1);
