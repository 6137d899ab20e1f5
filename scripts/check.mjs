// Checks the source: format, lint, types, unused code, package, sizes. Each check runs, also after one that failed.
//   npm run check             all of them
//   npm run check -- lint     these alone
import { spawnSync } from "node:child_process";
import path from "node:path";

const root = path.resolve(import.meta.dirname, "..");
const bins = ["node_modules/.bin", "scripts/node_modules/.bin", "test/system/node_modules/.bin"];
const searchPath = [...bins.map((folder) => path.join(root, folder)), process.env.PATH].join(path.delimiter);
const checks = {
  format: ["biome format ."],
  lint: ["biome lint .", "oxlint --type-aware"],
  types: ["tsc --noEmit"],
  // Packages of tests stand in package files of their own, which knip does not read.
  unused: ["knip --exclude unlisted,optionalPeerDependencies", "knip --production --include unlisted,dependencies"],
  package: ["publint"],
  size: ["size-limit --config ../.size-limit.json"],
};

const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !(name in checks));
if (unknown.length > 0) {
  process.stderr.write(`✗ There is no check ${unknown.join(", ")}. Checks: ${Object.keys(checks).join(", ")}.\n`);
  process.exit(2);
}
const failed = (wanted.length > 0 ? wanted : Object.keys(checks)).filter((name) => !checks[name].every(passes));
process.stderr.write(failed.length === 0 ? "✓ Every check passed.\n" : `✗ Failed: ${failed.join(", ")}.\n`);
process.exit(failed.length === 0 ? 0 : 1);

function passes(command) {
  const [program, ...words] = command.split(" ");
  const { status, error } = spawnSync(program, words, {
    // size-limit finds its plugin from the package file of the working folder.
    cwd: program === "size-limit" ? import.meta.dirname : root,
    stdio: "inherit",
    shell: process.platform === "win32",
    env: { ...process.env, PATH: searchPath },
  });
  if (error) throw error;
  return status === 0;
}
