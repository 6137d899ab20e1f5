import { spawnSync } from "node:child_process";
import path from "node:path";

const root = path.resolve(import.meta.dirname, "../..");

/** Every section that `npm run bench -- --only` takes, as it names them itself. */
export function sectionsOf(): string[] {
  const { stderr } = run("run.mjs", "--only", "no such section");
  return /Error: --only takes one of (.*), not/.exec(stderr)?.[1]?.split(", ") ?? [];
}

/** Runs a file of the bench to its end. */
export function run(file: string, ...words: string[]): { status: number | null; stdout: string; stderr: string } {
  return spawnSync(process.execPath, [path.join(root, "bench", file), ...words], { encoding: "utf8", cwd: root });
}
