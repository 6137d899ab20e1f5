// Runs every test and closes with one line that says how it went: "N passed, M failed".
//   npm test                  what everybody runs: every behaviour, with few rounds and the most telling cases
//   npm run check:long        the same tests with all their rounds and cases
//   npm run check:fuzz        a million near-messages, of another seed every time; MEANWHILE_FUZZ_SEED and MEANWHILE_FUZZ_FRAMES say otherwise
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";

const folder = mkdtempSync(path.join(tmpdir(), "meanwhile-test-"));
const report = path.join(folder, "report.json");
const given = process.argv.slice(2);
const words = [
  "run",
  "--reporter=default",
  "--reporter=json",
  `--outputFile.json=${report}`,
  ...given.filter((word) => word !== "--long" && word !== "--fuzz"),
];
// The defaults are tested with no variable set, whatever the shell has.
const env = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !name.startsWith("MEANWHILE_") || name === "MEANWHILE_CHAOS_SECONDS"),
);
if (given.includes("--long")) env.LONG_TESTS = "1";
if (given.includes("--fuzz")) {
  words.push("test/wire/fuzz.test.ts");
  env.MEANWHILE_FUZZ_SEED = process.env.MEANWHILE_FUZZ_SEED ?? String(Date.now() % 2 ** 31);
  env.MEANWHILE_FUZZ_FRAMES = process.env.MEANWHILE_FUZZ_FRAMES ?? "1000000";
}
// By its file: on Windows its name is that of a script, which only a shell can start.
const vitest = path.resolve(import.meta.dirname, "../node_modules/vitest/vitest.mjs");
const { status } = spawnSync(process.execPath, [vitest, ...words], { stdio: "inherit", env });

let passed = 0;
let failed = 0;
try {
  const result = JSON.parse(readFileSync(report, "utf8"));
  passed = result.numPassedTests;
  // A file that could not even be loaded has no tests to count.
  failed = Math.max(result.numFailedTests, result.numFailedTestSuites > 0 ? 1 : 0);
} catch (error) {
  process.stderr.write(`no test report: ${error.message}\n`);
  failed = 1;
}
rmSync(folder, { recursive: true, force: true });
process.stdout.write(`\n${passed} passed, ${failed} failed\n`);
process.exit(status === 0 && failed === 0 && passed > 0 ? 0 : 1);
