// Proves that a fresh clone in an empty folder, with an empty home, starts and passes by itself. Prints how long
// `npm start` and `npm test` take, installation and build included, and what `npm start` puts on the disk. Fails when
// that is too much.
//   npm run fresh              with the npm cache of this user, so that the network is not measured
//   npm run fresh -- --cold    with an empty npm cache
//   npm run fresh -- --start   npm start alone
import { spawn, spawnSync } from "node:child_process";
import { chmodSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";

const maxStartMb = 290;
const maxTestSeconds = 180;

const options = process.argv.slice(2);
const folder = mkdtempSync(path.join(tmpdir(), "meanwhile fresh-"));
const home = path.join(folder, "home");
const clone = path.join(folder, "meanwhile");
const port = await freePort();
// Some tests run the program as another user, who has to get there.
chmodSync(folder, 0o755);
mkdirSync(home);
// The machine's own Node and npm, without what this checkout puts on the path. With CI=true every tier would be measured.
const searchPath = process.env.PATH.split(path.delimiter).filter((entry) => !entry.includes("node_modules"));
const inherited = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !/^(npm_|NODE_|MEANWHILE_|INIT_CWD|CI$)/i.test(name)),
);
const usual = { ...inherited, PATH: searchPath.join(path.delimiter) };
// How npm reaches its registry is this machine's, in either case.
const npmSettings = {
  npm_config_userconfig: npmSetting("userconfig"),
  npm_config_cache: options.includes("--cold") ? path.join(home, ".npm") : npmSetting("cache"),
};
const env = { ...usual, ...npmSettings, HOME: home };

try {
  run("git", ["clone", "--quiet", process.cwd(), clone], { cwd: folder });
  process.stderr.write(`${version()}, a clone of ${git("rev-parse", "--short", "HEAD")} in an empty folder\n`);
  const startSeconds = await startUntilAnswered();
  const megabytes = ["node_modules", "dist"].reduce((sum, name) => sum + megabytesIn(path.join(clone, name)), 0);
  process.stdout.write(`npm start: installed, built and answered a call in ${startSeconds} s\n`);
  check(`npm start put ${Math.ceil(megabytes)} MB on the disk`, megabytes, maxStartMb);
  const againSeconds = await startUntilAnswered();
  process.stdout.write(`npm start once more: answered a call in ${againSeconds} s\n`);
  if (!options.includes("--start")) {
    run("git", ["clean", "-xdfq"], { cwd: clone });
    const startedAt = performance.now();
    run("npm", ["test"], { cwd: clone, env });
    check(`npm test: installed, built and passed in ${seconds(startedAt)} s`, seconds(startedAt), maxTestSeconds);
  }
} finally {
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}

function check(text, value, most) {
  process.stdout.write(`${text}, at most ${most}: ${value <= most ? "met" : "MISSED"}\n`);
  if (value > most) process.exitCode = 1;
}

function npmSetting(name) {
  return spawnSync("npm", ["config", "get", name], { encoding: "utf8", env: usual, cwd: folder }).stdout.trim();
}

function run(program, words, options) {
  const { status } = spawnSync(program, words, { stdio: ["ignore", 2, 2], ...options });
  if (status !== 0) throw new Error(`${program} ${words.join(" ")} ended with ${status}`);
}

function git(...words) {
  return spawnSync("git", words, { encoding: "utf8" }).stdout.trim();
}

function version() {
  const of = (program) => spawnSync(program, ["--version"], { encoding: "utf8", env }).stdout.trim();
  return `Node ${of("node")}, npm ${of("npm")}`;
}

function seconds(since) {
  return Math.round((performance.now() - since) / 1000);
}

/** What a folder takes on the disk, without what its links lead to. */
function megabytesIn(place) {
  const facts = lstatSync(place);
  const own = (facts.blocks * 512) / 1024 / 1024;
  if (!facts.isDirectory()) return own;
  return readdirSync(place).reduce((sum, name) => sum + megabytesIn(path.join(place, name)), own);
}

function freePort() {
  const server = createServer();
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port: free } = server.address();
      server.close(() => resolve(free));
    });
  });
}

async function startUntilAnswered() {
  const startedAt = performance.now();
  const server = spawn("npm", ["start"], {
    cwd: clone,
    env: { ...env, MEANWHILE_PORT: String(port) },
    stdio: ["ignore", 2, 2],
    detached: true,
  });
  const exited = new Promise((resolve) => server.once("exit", resolve));
  try {
    while (performance.now() - startedAt < 600_000) {
      if (server.exitCode !== null) throw new Error(`npm start ended with ${server.exitCode}`);
      if (await hasAnswered()) return seconds(startedAt);
      await new Promise((resolve) => setTimeout(resolve, 250));
    }
    throw new Error("npm start did not answer within ten minutes");
  } finally {
    if (server.exitCode === null && server.pid !== undefined) process.kill(-server.pid, "SIGTERM");
    await exited;
  }
}

async function hasAnswered() {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "config_path" } });
  try {
    const token = readFileSync(path.join(home, ".meanwhile/token"), "utf8").trim();
    const headers = {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      authorization: `Bearer ${token}`,
    };
    const response = await fetch(`http://127.0.0.1:${port}/mcp`, { method: "POST", headers, body });
    return (await response.text()).includes('"success":true');
  } catch {
    return false;
  }
}
