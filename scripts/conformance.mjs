// Lets the official conformance suite judge examples/everything, served over HTTP: `npm run conformance`. With
// `-- --signed-in` the server asks for credentials, and a proxy adds an API key, or an access token, to each request.
// Exits non-zero when a scenario fails.
import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import { addingCredential, signIns } from "./conformance-sign-in.mjs";

const root = path.resolve(import.meta.dirname, "..");
const executable = path.join(root, "bin", "meanwhile.cjs");
const suite = createRequire(import.meta.url).resolve("@modelcontextprotocol/conformance/dist/index.js");
const example = path.join(root, "examples", "everything");

const startLimitMs = 20_000;
const stopLimitMs = 5_000;
const suiteLimitMs = 240_000;

/** Serves the example, runs one revision's requirements against it, and stops it again. */
export async function runConformance(requirements) {
  const words = [executable, "serve", "--http", "--port", "0", "--no-bundled", "--allow-anonymous"];
  return await judge({ words, cwd: example }, ["--requirements", requirements]);
}

/** The same with the example behind `meanwhile wrap`, over stdio. */
export async function runConformanceThroughWrap(requirements) {
  const upstream = [process.execPath, executable, "-C", example, "serve", "--in-process", "--no-bundled"];
  const words = [executable, "wrap", "--http", "--port", "0", "--allow-anonymous", "--", ...upstream];
  return await judge({ words }, ["--requirements", requirements]);
}

/** The same with a server that asks for credentials, of a client that has an API key ("key") or an access token ("token"). */
export async function runConformanceSignedIn(requirements, credential) {
  // `--no-bundled` would make another project of it than `keys add` finds.
  const words = [executable, "serve", "--http", "--port", "0"];
  return await judge({ words, cwd: example, signIn: signIns[credential] }, ["--requirements", requirements]);
}

/** Starts a server that prints its address to stderr, lets the suite judge it as `asked` says, and stops it again. */
export async function judge({ words, cwd = root, signIn }, asked) {
  const folder = mkdtempSync(path.join(tmpdir(), "meanwhile-conformance-"));
  const env = { ...process.env, MEANWHILE_HOME: path.join(folder, "home") };
  const credential = await signIn?.({ cwd, env });
  const server = spawn(process.execPath, words, { cwd, env, stdio: ["ignore", "ignore", "pipe"] });
  const removeFolder = () => rmSync(folder, { recursive: true, force: true });
  const release = atExit(() => {
    server.kill("SIGKILL");
    removeFolder();
  });
  try {
    const url = await printedUrl(server);
    const proxy = credential && (await addingCredential(url, await credential.get()));
    const results = path.join(folder, "results");
    const output = await runSuite(["server", "--url", proxy?.url ?? url, ...asked, "--output-dir", results]);
    proxy?.close();
    return toReport(asked.at(-1), output, results);
  } finally {
    credential?.close();
    await stop(server);
    release();
    removeFolder();
  }
}

/** Nothing of ours is left behind, however we end; the returned function calls it off. */
function atExit(cleanUp) {
  process.once("exit", cleanUp);
  return () => process.off("exit", cleanUp);
}

function printedUrl(server) {
  let text = "";
  return new Promise((resolve, reject) => {
    const refuse = (why) => {
      clearTimeout(timer);
      reject(new Error(`The server ${why}:\n${text}`));
    };
    const timer = setTimeout(() => refuse(`printed no URL within ${startLimitMs / 1000} s`), startLimitMs);
    server.on("error", reject);
    server.on("close", (code) => refuse(`ended with code ${code}`));
    // Read on after the URL was found: a full pipe would stop the server.
    server.stderr.setEncoding("utf8").on("data", (part) => {
      text += part;
      const url = /http:\/\/127\.0\.0\.1:\d+\/mcp/.exec(text)?.[0];
      if (url === undefined) return;
      clearTimeout(timer);
      resolve(url);
    });
  });
}

async function stop(server) {
  const isRunning = server.pid !== undefined && server.exitCode === null && server.signalCode === null;
  if (!isRunning) return;
  const ended = new Promise((resolve) => server.once("close", resolve));
  server.kill("SIGTERM");
  const timer = setTimeout(() => server.kill("SIGKILL"), stopLimitMs);
  await ended;
  clearTimeout(timer);
}

function runSuite(words) {
  const child = spawn(process.execPath, [suite, ...words], {
    stdio: ["ignore", "pipe", "pipe"],
    timeout: suiteLimitMs,
    killSignal: "SIGKILL",
  });
  const release = atExit(() => child.kill("SIGKILL"));
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (part) => {
      output += part;
    });
  }
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", () => resolve(output));
  }).finally(release);
}

/** Every check by scenario, as the suite wrote them down. */
function readChecks(folder) {
  const checks = new Map();
  for (const name of readdirSync(folder)) {
    const scenario = /^server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z$/.exec(name)?.[1];
    if (scenario !== undefined)
      checks.set(scenario, JSON.parse(readFileSync(path.join(folder, name, "checks.json"), "utf8")));
  }
  return checks;
}

function toReport(requirements, output, results) {
  // The suite's own count, rather than ours, so that nothing is lost of a scenario that broke off.
  const lines = [...output.matchAll(/^[✓✗] (\S+): (\d+) passed, (\d+) failed$/gm)];
  const total = /^Total: (\d+) passed, (\d+) failed$/m.exec(output);
  if (total === null) throw new Error(`The suite did not get to its summary:\n${output.slice(-2_000)}`);
  const checks = readChecks(results);
  const idsWith = (scenario, status) =>
    (checks.get(scenario) ?? []).filter((check) => check.status === status).map((check) => check.id);
  const scenarios = lines.map(([, name, passed, failed]) => ({
    name,
    passed: Number(passed),
    failed: Number(failed),
    failures: idsWith(name, "FAILURE"),
    warnings: idsWith(name, "WARNING"),
  }));
  return { requirements, passed: Number(total[1]), failed: Number(total[2]), scenarios };
}

function toText({ requirements, passed, failed, scenarios }) {
  const failing = scenarios.filter((scenario) => scenario.failed > 0);
  const heading = `${requirements}: ${passed} passed, ${failed} failed`;
  const failures = failing.map(
    (scenario) => `  FAILED ${scenario.name} (${scenario.failed}): ${scenario.failures.join(", ")}`,
  );
  const warnings = scenarios
    .filter(({ warnings }) => warnings.length > 0)
    .map(({ name, warnings }) => `  warning ${name}: ${warnings.join(", ")}`);
  return `${[heading, ...failures, ...warnings].join("\n")}\n`;
}

async function main() {
  for (const [signal, code] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ])
    process.once(signal, () => process.exit(code));
  const signedIn = process.argv.includes("--signed-in") ? Object.keys(signIns) : [];
  for (const requirements of ["2025-11-25", "2026-07-28"]) {
    const reports = signedIn.length === 0 ? [await runConformance(requirements)] : [];
    for (const credential of signedIn) reports.push(await runConformanceSignedIn(requirements, credential));
    for (const report of reports) {
      process.stdout.write(toText(report));
      if (report.scenarios.some((scenario) => scenario.failed > 0)) process.exitCode = 1;
    }
  }
}

if (process.argv[1] === import.meta.filename) await main();
