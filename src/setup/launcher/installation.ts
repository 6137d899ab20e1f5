import { existsSync, realpathSync } from "node:fs";
import path from "node:path";
import { thisProgram } from "../../program/program.ts";
import { isFetchedByNpx } from "../launch.ts";

/**
 * How a copy of the package came to this machine, which decides how long it stays there:
 * - `global`: installed for all projects (npm, pnpm, Yarn, Bun, Volta, Homebrew), or unpacked outside of node_modules.
 * - `clone`: in a git repository.
 * - `npx`: in the cache of npx, which may be cleared; npx fetches the copy again.
 * - `project`: in any other node_modules, that of `pnpm dlx` included; the copy is removed with the project.
 */
export type Installation = "global" | "clone" | "npx" | "project";

/** Returns how the copy was installed that this executable belongs to. The copy has to be there. */
export function installationOf(executable: string): Installation {
  if (isFetchedByNpx(executable)) return "npx";
  const parts = executable.split(/[\\/]/);
  const at = parts.indexOf("node_modules");
  if (at < 0) return isInRepository(executable) ? "clone" : "global";
  return isGlobalFolder(parts.slice(0, at).join(path.sep)) ? "global" : "project";
}

/** True for a folder whose node_modules holds what `npm install -g` and its like install. */
function isGlobalFolder(folder: string): boolean {
  // pnpm, Yarn and Bun keep a package.json there, as a project has one.
  if (/[\\/]\.?pnpm[\\/]global[\\/]|[\\/]yarn[\\/](?:data[\\/])?global$|[\\/]install[\\/]global$/i.test(folder))
    return true;
  const isThere = (name: string) => existsSync(path.join(folder, name));
  // On Windows npm writes the .cmd of a global package beside node_modules, elsewhere node_modules is in lib.
  return !isThere("package.json") && (path.basename(folder) === "lib" || isThere(`${thisProgram.name}.cmd`));
}

function isInRepository(file: string): boolean {
  const folder = path.dirname(file);
  return existsSync(path.join(folder, ".git")) || (folder !== file && isInRepository(folder));
}

/**
 * Returns the path of a file by which an upgrade keeps it: pnpm and Homebrew put the version into the real path, and
 * link to it from a path without. `candidates` are paths that may be such links.
 */
export function lastingPath(file: string, candidates: readonly string[]): string {
  const links = [
    ...candidates,
    file.replace(/(?<=[\\/])(?:node_modules[\\/])?\.pnpm[\\/][^\\/]+[\\/](?=node_modules[\\/])/, ""),
    file.replace(/(?<=[\\/])Cellar([\\/][^\\/]+)[\\/][^\\/]+(?=[\\/])/, "opt$1"),
  ];
  return links.find((link) => link !== file && isSameFile(link, file)) ?? file;
}

/** True for two paths of one file, which is there. */
export function isSameFile(one: string, other: string): boolean {
  try {
    return realpathSync(one) === realpathSync(other);
  } catch {
    return false;
  }
}
