// node bench/start.mjs [--quick] [--markdown]: processor time from the start of a process to the first answer of a
// tools/call, over stdio, beside a server of SDK v2. Each turn starts every server once, in another order; the daemon's
// row counts the daemon alone, without its stdio proxy. A missed goal is reported; only what breaks fails.
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { openStdio } from "./client.mjs";
import { makePlainProject } from "./projects.mjs";
import { createRandom, printTable, Results, toTable } from "./report.mjs";

const at = (file) => fileURLToPath(new URL(file, import.meta.url));
const program = at("../bin/meanwhile.cjs");
const { values: options } = parseArgs({ options: { quick: { type: "boolean" }, markdown: { type: "boolean" } } });
const turns = options.quick ? 3 : 9;
const fewFiles = 3;

const sdkV2 = (most) => ({ of: "SDK v2", most });
const few = (most) => ({ of: "Meanwhile", row: "few", name: `${fewFiles} files`, most });
const table = {
  columns: ["SDK v2", "Meanwhile"],
  rows: [
    { id: "fresh", title: "in-process, 25 command files, fresh home", goals: [sdkV2(1)] },
    { id: "fresh-js", title: "in-process, 10 files of JavaScript, fresh home", goals: [sdkV2(1)] },
    { id: "warm", title: "in-process, 25 command files, warm home", goals: [sdkV2(0.6)] },
    { id: "few", title: `in-process, ${fewFiles} command files, warm home`, goals: [sdkV2()] },
    { id: "ten", title: "in-process, 10 command files, warm home", goals: [few(1.2)] },
    { id: "many", title: "in-process, 1,000 command files, warm home", goals: [few(1.2)] },
    { id: "daemon", title: "daemon, 25 command files, warm home", goals: [{ most: 400 }, sdkV2()] },
  ].map((row) => ({ ...row, unit: "ms" })),
};

const scratch = mkdtempSync(path.join(os.tmpdir(), "meanwhile-bench-start-"));
const homes = path.join(scratch, "homes");
const everything = ["--no-bundled", "--commands", at("../examples/everything/commands")];
const inFolder = (commands, ending) => [
  "-C",
  makePlainProject(path.join(scratch, `project-${commands}-${ending}`), commands, ending),
];
const inProcess = (words) => [program, ...words, "serve", "--no-bundled", "--in-process"];

const greet = {
  ask: (text) => ({ name: "greet", arguments: { name: text } }),
  echoed: (_structured, content) => /Hello, (\w+)!/.exec(content[0].text)?.[1],
};
const echo = { echoed: ({ data }) => data?.text };

/** `isFresh`: with a new home in each turn. */
const servers = [
  { id: "sdk", stdio: [at("servers/sdk-v2.mjs")], echoed: ({ text }) => text },
  { id: "fresh", stdio: [program, "serve", "--in-process", ...everything], isFresh: true, ...greet },
  // Node removes the types of a file before the cache of compiled code has it, with a compiler that takes 30 ms to load.
  { id: "fresh-js", stdio: inProcess(inFolder(10, "mjs")), isFresh: true, ...echo },
  { id: "warm", stdio: [program, "serve", "--in-process", ...everything], ...greet },
  { id: "few", stdio: inProcess(inFolder(fewFiles, "ts")), ...echo },
  { id: "ten", stdio: inProcess(inFolder(10, "ts")), ...echo },
  { id: "many", stdio: inProcess(inFolder(1_000, "ts")), ...echo },
  { id: "daemon", stdio: [program, "serve", ...everything], ...greet },
];

const baseEnv = { PATH: process.env.PATH, HOME: scratch };
const envOf = (home) => ({ ...baseEnv, MEANWHILE_HOME: home });
process.on("exit", () => {
  stopDaemon();
  rmSync(scratch, { recursive: true, force: true, maxRetries: 5 });
});

const startedAt = performance.now();
const results = new Results();
const random = createRandom(20260728);
mkdirSync(homes);
// One turn more than counted fills the warm homes and reads cold files.
for (let turn = 0; turn <= turns; turn++) {
  process.stderr.write(`start, turn ${turn} of ${turns}\n`);
  for (const server of shuffled(servers)) {
    const cpuMs = await measure(server, turn);
    if (turn === 0) continue;
    if (server.id !== "sdk") results.add(server.id, "Meanwhile", cpuMs);
    else for (const { id } of table.rows) results.add(id, "SDK v2", cpuMs);
  }
}
printTable(toTable(table, results), { ...options, rounds: turns, startedAt });

/** Processor time until the first call is answered. */
async function measure(server, turn) {
  const home = path.join(homes, server.isFresh ? `${server.id}-${turn}` : server.id);
  if (server.id === "daemon") stopDaemon();
  const client = await openStdio(server, envOf(home));
  await client.process.expect(client.call("first"), "the first call");
  const cpuMs = server.id === "daemon" ? daemonMs(client.process, home) : client.process.cpuMs();
  // The first start in a home leaves the cached catalog and compiled code behind, once all files are loaded.
  if (turn === 0) await client.request("tools/list", {});
  await client.close();
  return cpuMs;
}

/** All processes of this home but the stdio proxy. */
function daemonMs(proxy, home) {
  const ofProxy = proxy.cpuMs();
  proxy.countAll(`MEANWHILE_HOME=${home}`);
  return proxy.cpuMs() - ofProxy;
}

function stopDaemon() {
  spawnSync(process.execPath, [program, ...everything, "daemon", "stop", "--all", "--now"], {
    env: envOf(path.join(homes, "daemon")),
    stdio: "ignore",
  });
}

function shuffled(list) {
  const rest = [...list];
  return list.map(() => rest.splice(Math.floor(random() * rest.length), 1)[0]);
}
