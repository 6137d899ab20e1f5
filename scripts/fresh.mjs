// Proves that a fresh clone in an empty folder, with an empty home, starts and passes by itself, and prints both times.
import { spawn, spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";

const folder = mkdtempSync(path.join(tmpdir(), "meanwhile-fresh-"));
const home = path.join(folder, "home");
const clone = path.join(folder, "meanwhile");
const port = 7399;
// Some tests run the program as another user, who has to get there.
chmodSync(folder, 0o755);
mkdirSync(home);
// The machine's own Node and npm, without what this checkout puts on the path.
const searchPath = process.env.PATH.split(path.delimiter).filter((entry) => !entry.includes("node_modules"));
const inherited = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !/^(npm_|NODE_|MEANWHILE_|INIT_CWD)/i.test(name)),
);
const env = { ...inherited, PATH: searchPath.join(path.delimiter), HOME: home };

try {
  run("git", ["clone", "--quiet", process.cwd(), clone], { cwd: folder });
  process.stderr.write(`${version()}, a clone of ${git("rev-parse", "--short", "HEAD")} in an empty folder\n`);
  const startSeconds = await startUntilAnswered();
  process.stdout.write(`npm start: installed, built and answered a call in ${startSeconds} s\n`);
  run("git", ["clean", "-xdfq"], { cwd: clone });
  const startedAt = performance.now();
  run("npm", ["test"], { cwd: clone, env });
  process.stdout.write(`npm test: installed, built and passed in ${seconds(startedAt)} s\n`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function run(program, words, options) {
  const { status } = spawnSync(program, words, { stdio: ["ignore", 2, 2], ...options });
  if (status !== 0) throw new Error(`${program} ${words.join(" ")} ended with ${status}`);
}

function git(...words) {
  return spawnSync("git", words, { encoding: "utf8" }).stdout.trim();
}

function version() {
  return `Node ${spawnSync("node", ["--version"], { encoding: "utf8", env }).stdout.trim()}, npm ${spawnSync("npm", ["--version"], { encoding: "utf8", env }).stdout.trim()}`;
}

function seconds(since) {
  return Math.round((performance.now() - since) / 1000);
}

async function startUntilAnswered() {
  const startedAt = performance.now();
  const server = spawn("npm", ["start"], {
    cwd: clone,
    env: { ...env, MEANWHILE_PORT: String(port) },
    stdio: ["ignore", 2, 2],
    detached: true,
  });
  try {
    while (performance.now() - startedAt < 600_000) {
      if (server.exitCode !== null) throw new Error(`npm start ended with ${server.exitCode}`);
      if (await hasAnswered()) return seconds(startedAt);
      await new Promise((resolve) => setTimeout(resolve, 250));
    }
    throw new Error("npm start did not answer within ten minutes");
  } finally {
    if (server.pid !== undefined) process.kill(-server.pid, "SIGTERM");
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
