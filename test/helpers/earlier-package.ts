import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { temporaryFolder } from "./home.ts";

const repository = path.resolve(import.meta.dirname, "../..");

/** The package as it was at a commit, built; says that it is another version. Its folder is gone after the test. */
export function buildEarlierPackage(commit: string, version: string): string {
  const folder = path.join(temporaryFolder(), "package");
  mkdirSync(folder);
  const archive = path.join(path.dirname(folder), "package.tar");
  run("git", ["-C", repository, "archive", `--output=${archive}`, commit]);
  run("tar", ["-xf", archive, "-C", folder]);
  symlinkSync(path.join(repository, "node_modules"), path.join(folder, "node_modules"));
  const manifest = path.join(folder, "package.json");
  writeFileSync(manifest, JSON.stringify({ ...(JSON.parse(readFileSync(manifest, "utf8")) as object), version }));
  const tsdown = path.join(repository, "node_modules", "tsdown", "dist", "run.mjs");
  run(process.execPath, [tsdown, "--log-level=error"], folder);
  return folder;
}

function run(program: string, words: readonly string[], cwd = repository): void {
  const { status, stderr, error } = spawnSync(program, words, { cwd, encoding: "utf8" });
  if (status !== 0) throw error ?? new Error(`${program} ${words.join(" ")} failed: ${stderr}`);
}
