// Packs this package, installs it into an empty folder and uses it there under its own name; ends with 0 if all is well.
// With a folder behind it, uses what is installed in that one.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import {
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const here = import.meta.dirname;
const place = mkdtempSync(path.join(tmpdir(), "acme-"));
const installed = realpathSync(process.argv[2] ?? install());
const user = path.join(place, "user");
const work = path.join(place, "work");
for (const folder of [user, work]) mkdirSync(folder);
// A folder whose files nobody has asked for.
writeFileSync(path.join(work, "acme.config.ts"), 'throw new Error("loaded");');

const acme = path.join(installed, "node_modules/.bin/acme");
const env = { ...process.env, HOME: user, USERPROFILE: user, NO_COLOR: "1" };
for (const name of Object.keys(env)) if (/^(MEANWHILE|ACME)_/.test(name)) delete env[name];
/** All that was said to a person or a model. */
const said = [];

try {
  inTerminal();
  inShell();
  const entry = inSettings();
  await inHost(entry);
  run(["setup", "claude-code", "--remove"]);
  assert.equal(existsSync(path.join(user, ".claude.json")), false, "setup has left its file");
  run(["daemon", "stop", "--now"]);
  nameIsOwn();
  console.log("acme: installed, run, completed, set up and served under its own name");
} finally {
  spawnSync(acme, ["daemon", "stop", "--now"], { cwd: work, env });
  rmSync(place, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
}

/** As a stranger gets it: both packages by npm, into an empty folder. */
function install() {
  const folder = path.join(place, "installed");
  mkdirSync(folder);
  writeFileSync(path.join(folder, "package.json"), '{ "name": "stranger", "private": true }');
  const pack = (from) =>
    path.join(
      place,
      execFileSync("npm", ["pack", "--silent", "--pack-destination", place], { cwd: from, encoding: "utf8" }).trim(),
    );
  const tarballs = [path.resolve(here, "../.."), here].map(pack);
  execFileSync("npm", ["install", "--no-audit", "--no-fund", "--loglevel=error", ...tarballs], { cwd: folder });
  return folder;
}

/** Runs it to its end. */
function run(words, { code = 0 } = {}) {
  const { status, stdout, stderr } = spawnSync(acme, words, { cwd: work, env, encoding: "utf8" });
  said.push(stdout, stderr);
  assert.equal(status, code, `acme ${words.join(" ")}: ${stderr}`);
  return { stdout, stderr };
}

function inTerminal() {
  assert.equal(run(["--version"]).stdout, "1.2.0\n");
  assert.match(run(["--help"]).stdout, /^acme 1\.2\.0: reports of a quarter\n[\s\S]*Usage: acme /);
  assert.match(
    run(["report", "build", "--help"]).stdout,
    /Usage: acme report build <quarter>[\s\S]*\$ acme report build Q3/,
  );
  for (const verb of [
    "serve",
    "call",
    "tasks",
    "tools",
    "stats",
    "diagnose",
    "compare",
    "setup",
    "daemon",
    "token",
    "completion",
  ])
    run([verb, "--help"]);
  assert.equal(
    run(["report", "list", "--json", "--quiet"]).stdout.replaceAll(/\s/g, ""),
    '{"quarters":["Q1","Q2","Q3"]}',
  );
  const built = run(["report", "build", "Q3", "--pages", "3"]);
  assert.match(built.stdout, /^file: q3\.pdf\n/);
  assert.match(built.stderr, /Page 3 of 3/);
  assert.match(run(["report", "biuld"], { code: 2 }).stderr, /did you mean `acme report build`/);
  const taskId = run(["report", "build", "Q1", "--pages", "2", "--detach"]).stdout.trim();
  assert.match(run(["tasks", "result", taskId, "--wait"]).stdout, /q1\.pdf/);
  assert.match(run(["tools"]).stdout, /report_build +acme report build/);
  assert.match(run(["call", ".", "report_list", "--json"]).stdout, /"Q3"/);
  assert.match(run(["tools", "."]).stdout, /report_build/);
  for (const words of [["stats"], ["tasks", "list"], ["daemon", "status"], ["token"]]) run(words);
}

/** A bash that has sourced the script gets its replies from it. */
function inShell() {
  if (spawnSync("bash", ["--version"]).status !== 0) return;
  writeFileSync(path.join(place, "completion.bash"), run(["completion", "bash"]).stdout);
  for (const shell of ["zsh", "fish"]) run(["completion", shell]);
  const call = `source "$2"; complete -p acme; COMP_LINE=$1 COMP_POINT=\${#1} COMP_WORDS=($1) COMP_CWORD=$((\${#COMP_WORDS[@]} - 1))
_acme; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const reply = (line) => {
    const bin = `${path.dirname(acme)}${path.delimiter}${env.PATH}`;
    const words = ["--noprofile", "--norc", "-c", call, "bash", line, path.join(place, "completion.bash")];
    const { stdout, stderr } = spawnSync("bash", words, { cwd: work, env: { ...env, PATH: bin }, encoding: "utf8" });
    assert.equal(stderr, "");
    return stdout.trim().split("\n");
  };
  const complete = "complete -o nosort -F _acme acme";
  assert.deepEqual(reply("acme rep"), [complete, "report"]);
  assert.deepEqual(reply("acme report "), [complete, "build", "list"]);
  assert.deepEqual(reply("acme report build --format h"), [complete, "html"]);
}

/** What is written into a host's file starts this very program. */
function inSettings() {
  assert.match(run(["setup", "claude-code"]).stderr, /added acme to ~\/\.claude\.json/);
  const { mcpServers } = JSON.parse(readFileSync(path.join(user, ".claude.json"), "utf8"));
  assert.deepEqual(Object.keys(mcpServers), ["acme"]);
  const { command, args } = mcpServers.acme;
  // A launcher in the program's home finds Node and the package again after an upgrade.
  assert.deepEqual([command, ...args], [path.join(user, ".acme", "bin", "acme"), "serve"]);
  return mcpServers.acme;
}

async function connect({ command, args }) {
  const client = new Client({ name: "check", version: "1.0.0" });
  const transport = new StdioClientTransport({ command, args, cwd: work, env, stderr: "pipe" });
  transport.stderr.on("data", (text) => said.push(String(text)));
  await client.connect(transport);
  return { client, transport };
}

/** A slow call whose host is killed goes on, and the next session has its result. */
async function inHost(entry) {
  const first = await connect(entry);
  assert.deepEqual(pick(first.client.getServerVersion()), { name: "acme", version: "1.2.0" });
  said.push(first.client.getInstructions());
  const { tools } = await first.client.listTools();
  said.push(...tools.map(({ description }) => description));
  assert.deepEqual(
    tools
      .map(({ name }) => name)
      .filter((name) => name.startsWith("report_"))
      .sort(),
    ["report_build", "report_list"],
  );
  const quick = await first.client.callTool({ name: "report_list", arguments: {} });
  assert.deepEqual(quick.structuredContent.data, { quarters: ["Q1", "Q2", "Q3"] });
  const begun = Promise.withResolvers();
  const slow = first.client.callTool(
    { name: "report_build", arguments: { quarter: "Q2", pages: 60 } },
    { onprogress: begun.resolve },
  );
  const lost = assert.rejects(slow);
  await begun.promise;
  process.kill(first.transport.pid, "SIGKILL");
  await lost;

  const [task] = JSON.parse(run(["tasks", "list", "--json"]).stdout).tasks.filter(
    ({ command }) => command === "report_build",
  );
  const second = await connect(entry);
  for (let isDone = false; !isDone; ) {
    const { structuredContent, content } = await second.client.callTool({
      name: "task_result",
      arguments: { job_id: task.taskId, wait_seconds: 20 },
    });
    said.push(...content.map(({ text }) => text));
    isDone = structuredContent.data.file !== undefined;
    if (isDone) assert.deepEqual(structuredContent.data, { file: "q2.pdf", pages: 60 });
  }
  await second.client.close();
}

function pick({ name, version }) {
  return { name, version };
}

/** The name of what is inside stands in no sentence and no file; on the wire, `_meta` keys begin with it. */
function nameIsOwn() {
  assert.deepEqual(
    globSync("*", { cwd: user, dot: true })
      .concat(globSync(".*", { cwd: user }))
      .sort(),
    [".acme"],
  );
  const files = globSync("**/*", { cwd: path.join(user, ".acme") })
    .filter((name) => !name.startsWith(path.join("cache", "code")))
    .map((name) => path.join(user, ".acme", name))
    .filter((file) => statSync(file).isFile());
  const texts = [...said, ...files.map((file) => `${file}\n${readFileSync(file, "latin1")}`)];
  const onWire =
    /meanwhile\/(call|tool|progress|new|task|jobs|answerUntil)|meanwhile:\/\/stats|node_modules\/meanwhile\//g;
  assert.deepEqual(
    texts
      .map((text) => text.replaceAll(installed, "").replaceAll(onWire, ""))
      .filter((text) => /meanwhile/i.test(text)),
    [],
  );
  assert.deepEqual(globSync("*", { cwd: work }), ["acme.config.ts"]);
}
