import { existsSync, readdirSync } from "node:fs";
import { homedir } from "node:os";
import path from "node:path";
import type { CommandContext } from "meanwhile";
import type { Reach } from "../_pack/reach.ts";
import { type KnownPlace, slugOf } from "./_places.ts";

/** Aider keeps its history in each project's own folder, under this name. */
const historyName = ".aider.chat.history.md";

/**
 * So deep below the home, the working folder and the given roots projects are looked for, and in so many folders in
 * all.
 */
const maxDepth = 3;
const maxFolders = 5_000;
/** Where nobody keeps projects, and much else. */
const passedOver = new Set([
  "node_modules",
  "Library",
  "AppData",
  "Applications",
  "Music",
  "Pictures",
  "Videos",
  "Movies",
]);

interface Looking extends Pick<CommandContext, "origin" | "config"> {
  readonly reach: Reach;
  readonly roots: readonly string[];
}

/**
 * The histories of Aider's projects: in the working folder and those above it, below the home, below the given roots,
 * and those that `pack.roots` names. Only names are looked at; folders that are closed to whoever asked are not.
 */
export function findAider({ origin, config, reach, roots }: Looking): KnownPlace[] {
  const { roots: named = [] } = (config.pack ?? {}) as { readonly roots?: readonly string[] };
  const starts = [...(origin.folder === undefined ? [] : [origin.folder]), ...roots, ...named, homedir()];
  const found = new Set(named.filter((file) => path.basename(file) === historyName && existsSync(file)));
  if (reach.isFree) for (const folder of foldersAbove(origin.folder)) addHistory(folder, found);
  const seen = new Set<string>();
  let pending = starts.map((folder) => path.resolve(folder));
  for (let depth = 0; depth <= maxDepth && seen.size < maxFolders; depth++) {
    const below: string[] = [];
    for (const folder of pending) {
      if (seen.has(folder) || seen.size >= maxFolders || reach.hides(Buffer.from(folder), "folder")) continue;
      seen.add(folder);
      addHistory(folder, found);
      if (depth < maxDepth) below.push(...foldersIn(folder));
    }
    pending = below;
  }
  return [...found].sort().map(toPlace);
}

function addHistory(folder: string, found: Set<string>): void {
  const file = path.join(folder, historyName);
  if (existsSync(file)) found.add(file);
}

function toPlace(file: string): KnownPlace {
  const folder = path.dirname(file);
  const below = path.relative(homedir(), folder);
  const id = `aider-${slugOf(below.startsWith("..") ? folder : below) || "home"}`;
  return {
    id,
    provider: "aider",
    assistant: "Aider",
    kind: "history",
    format: "files",
    path: file,
    pattern: "",
    project: path.basename(folder),
  };
}

function foldersAbove(folder: string | undefined): string[] {
  if (folder === undefined) return [];
  const above = path.dirname(folder);
  return above === folder ? [] : [above, ...foldersAbove(above)];
}

function foldersIn(folder: string): string[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isDirectory() && !entry.name.startsWith(".") && !passedOver.has(entry.name))
      .map(({ name }) => path.join(folder, name));
  } catch {
    return []; // Not there, or not ours to look into.
  }
}
