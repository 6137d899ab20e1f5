// node bench/pack.mjs [--quick] [--markdown]: `monitor sync` on a generated tree, beside `find | xargs sha256sum` and a bare walk of the same tree.
// First run, second run with 1 % changed, memory, how long it is silent, and kill -9 in the middle. A missed goal is
// reported; only what breaks or counts wrongly fails.
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import Database from "better-sqlite3";
import { median, Results, toMarkdown, toText } from "./report.mjs";

const program = fileURLToPath(new URL("../bin/meanwhile.cjs", import.meta.url));
const sizes = { quick: { files: 10_000, rounds: 1 }, full: { files: 100_000, rounds: 3 } };
const fileBytes = 4096;
const filesInFolder = 100;
const maxMemoryMiB = 200;

/** A shell's pipeline, as people write it. */
const hashAll = (tree) => ["sh", ["-c", 'find "$1" -type f -print0 | xargs -0 sha256sum > /dev/null', "sh", tree]];
const walkAll = (tree) => ["sh", ["-c", `find "$1" -type f -printf '%s %T@ %i\\n' > /dev/null`, "sh", tree]];

/** Folders of a hundred files, 32 wide, each file with content of its own. */
function makeTree(tree, files) {
  const content = Buffer.alloc(fileBytes);
  for (let at = 0; at < files; at++) {
    const folder = fileAt(tree, at).folder;
    if (at % filesInFolder === 0) mkdirSync(folder, { recursive: true });
    content.writeUInt32LE(at, 0);
    writeFileSync(fileAt(tree, at).file, content);
  }
}

function fileAt(tree, at) {
  const number = Math.floor(at / filesInFolder);
  const folder = path.join(tree, `part-${number % 32}`, `folder-${number}`);
  return { folder, file: path.join(folder, `file-${at % filesInFolder}.txt`) };
}

/** Every hundredth file gets other content, and another size now and then. */
function changeSome(tree, files, round) {
  for (let at = round; at < files; at += 100)
    writeFileSync(fileAt(tree, at).file, Buffer.alloc(fileBytes + (at % 3), `${round}`));
}

/** Runs a program to its end: milliseconds, its largest memory, and its longest silence on stderr. */
async function measure(command, words, options = {}) {
  const startedAt = performance.now();
  const child = spawn(command, words, { stdio: ["ignore", "pipe", "pipe"], ...options });
  let stdout = "";
  let stderr = "";
  let lastAt = startedAt;
  let silentMs = 0;
  let memoryMiB = 0;
  const watching = setInterval(() => {
    memoryMiB = Math.max(memoryMiB, peakOf(child.pid));
  }, 20);
  child.stdout.on("data", (text) => (stdout += text));
  child.stderr.on("data", (text) => {
    stderr += text;
    silentMs = Math.max(silentMs, performance.now() - lastAt);
    lastAt = performance.now();
  });
  const code = await new Promise((resolve) => child.on("close", (status, signal) => resolve(status ?? signal)));
  clearInterval(watching);
  const tookMs = performance.now() - startedAt;
  if (code !== 0 && code !== options.expected) throw new Error(`${command} ${words[0]} ended with ${code}: ${stderr}`);
  return { tookMs, memoryMiB, silentMs, stdout };
}

/** The kernel's own high-water mark. */
function peakOf(pid) {
  try {
    return Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) / 1024;
  } catch {
    return 0;
  }
}

const syncWords = (tree) => [program, "monitor", "sync", tree, "--recursive", "--json"];
const envOf = (home, scratch) => ({ PATH: process.env.PATH, HOME: scratch, MEANWHILE_HOME: home });

async function sync(tree, home, scratch, expected) {
  const measured = await measure(process.execPath, syncWords(tree), { env: envOf(home, scratch), cwd: scratch });
  const output = JSON.parse(measured.stdout);
  for (const [field, value] of Object.entries(expected)) {
    if (output[field] !== value) throw new Error(`${field} must be ${value}: ${measured.stdout}`);
  }
  return measured;
}

async function measureRound(results, { tree, files, scratch, home, round }) {
  forget(home);
  const peer = await measure(...hashAll(tree));
  const first = await sync(tree, home, scratch, { files_updated: files, files_skipped: 0, errors_total: 0 });
  changeSome(tree, files, round);
  const changed = Math.ceil((files - round) / 100);
  const peerAgain = await measure(...hashAll(tree));
  const second = await sync(tree, home, scratch, {
    files_updated: changed,
    files_skipped: files - changed,
    errors_total: 0,
  });
  const walk = await measure(...walkAll(tree));
  results.add("first", "peer", peer.tookMs);
  results.add("first", "ours", first.tookMs);
  results.add("second", "peer", peerAgain.tookMs);
  results.add("second", "ours", second.tookMs);
  results.add("walk", "peer", walk.tookMs);
  results.add("memory", "ours", Math.max(first.memoryMiB, second.memoryMiB));
  results.add("silence", "ours", first.silentMs);
}

/** What was recorded goes; the code that Meanwhile has compiled stays, as it does for everybody who starts it twice. */
function forget(home) {
  for (const end of ["", "-wal", "-shm"]) rmSync(path.join(home, `pack.db${end}`), { force: true });
}

/** Killed as soon as a third is recorded; the next run must read exactly the rest. */
async function measureResume(results, { tree, files, scratch, home }) {
  forget(home);
  const child = spawn(process.execPath, syncWords(tree), { stdio: "ignore", env: envOf(home, scratch), cwd: scratch });
  const ended = new Promise((resolve) => child.on("close", resolve));
  let isOver = false;
  void ended.then(() => (isOver = true));
  while (!isOver && recordedIn(home) < files / 3) await new Promise((resolve) => setTimeout(resolve, 5));
  child.kill("SIGKILL");
  await ended;
  const recorded = recordedIn(home);
  if (recorded === 0 || recorded >= files)
    throw new Error(`the run was not killed in the middle: ${recorded} of ${files} were recorded`);
  const { tookMs } = await sync(tree, home, scratch, {
    files_updated: files - recorded,
    files_skipped: recorded,
    errors_total: 0,
  });
  results.add("kept", "ours", (100 * recorded) / files);
  results.add("resumed", "ours", tookMs);
}

function recordedIn(home) {
  try {
    const db = new Database(path.join(home, "pack.db"), { readonly: true, fileMustExist: true });
    try {
      return Number(db.prepare("select count(*) from monitor_files").pluck().get());
    } finally {
      db.close();
    }
  } catch {
    return 0; // Not made yet.
  }
}

const formatMs = (ms) => Math.ceil(ms).toLocaleString("en-US");

/** How many times as fast as the peer, rounded to the worse side. */
function formatSpeed(ratios) {
  const speeds = ratios.map((ratio) => Math.floor(100 / ratio) / 100);
  const middle = median(speeds).toFixed(2);
  return speeds.length === 1
    ? middle
    : `${middle} (${Math.min(...speeds).toFixed(2)}–${Math.max(...speeds).toFixed(2)})`;
}

function toTable(results, files) {
  const many = files.toLocaleString("en-US");
  const goal = (text, isMet) => `${text}: ${isMet ? "met" : "MISSED"}`;
  // With few files, starting the program is most of it: those goals are for the whole tree.
  const speedGoal = (text, isMet) => (files < sizes.full.files ? "" : goal(text, isMet));
  const [first, second] = ["first", "second"].map((row) => results.ratios(row, "ours", "peer"));
  const ours = (row) => results.value(row, "ours");
  const lines = [
    [
      `monitor sync, ${many} new files of 4 kB`,
      "ms",
      formatMs(results.value("first", "peer")),
      formatMs(ours("first")),
      formatSpeed(first),
      speedGoal("≥ 1", 1 / median(first) >= 1),
    ],
    [
      "the same with 1 % changed",
      "ms",
      formatMs(results.value("second", "peer")),
      formatMs(ours("second")),
      formatSpeed(second),
      speedGoal("≥ 3", 1 / median(second) >= 3),
    ],
    ["bare walk (find -printf)", "ms", formatMs(results.value("walk", "peer")), "–", "–", ""],
    [
      "largest memory",
      "MiB",
      "–",
      ours("memory").toFixed(0),
      "–",
      goal(`< ${maxMemoryMiB} MiB`, ours("memory") < maxMemoryMiB),
    ],
    ["longest silence of its progress", "ms", "–", formatMs(ours("silence")), "–", ""],
    [
      `after kill -9 with ${ours("kept").toFixed(0)} % recorded, the rest alone`,
      "ms",
      "–",
      formatMs(ours("resumed")),
      "–",
      "",
    ],
  ];
  const missed = lines.filter((line) => line[5].endsWith("MISSED")).map((line) => line[0]);
  return { head: ["", "unit", "find | xargs sha256sum", "Meanwhile", "times as fast", "goals"], lines, missed };
}

async function main() {
  const { values: options } = parseArgs({ options: { quick: { type: "boolean" }, markdown: { type: "boolean" } } });
  const { files, rounds } = options.quick ? sizes.quick : sizes.full;
  const scratch = realpathSync(mkdtempSync(path.join(os.tmpdir(), "meanwhile-bench-pack-")));
  process.on("exit", () => rmSync(scratch, { recursive: true, force: true }));
  const tree = path.join(scratch, "tree");
  const startedAt = performance.now();
  process.stderr.write(`pack, making ${files} files\n`);
  makeTree(tree, files);
  const results = new Results();
  // Compiled code is kept from here on, and the tree is in memory for everybody.
  const home = path.join(scratch, "home");
  await sync(tree, home, scratch, { files_updated: files });
  for (let round = 1; round <= rounds; round++) {
    process.stderr.write(`pack, round ${round} of ${rounds}\n`);
    await measureRound(results, { tree, files, scratch, home, round });
  }
  await measureResume(results, { tree, files, scratch, home });
  const table = toTable(results, files);
  const seconds = Math.round((performance.now() - startedAt) / 1000);
  const about = `Node ${process.versions.node}, ${os.availableParallelism()} cores, ${os.type()}, load ${os.loadavg()[0].toFixed(1)}, ${seconds} s; from spawn to exit, medians of rounds, ratios taken within each round.`;
  const verdict = table.missed.length === 0 ? "Every goal is met." : `Missed: ${table.missed.join("; ")}.`;
  process.stdout.write(`${options.markdown ? toMarkdown(table) : toText(table)}\n\n${about}\n${verdict}\n`);
}

await main();
