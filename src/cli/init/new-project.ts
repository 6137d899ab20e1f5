import {
  closeSync,
  lstatSync,
  mkdirSync,
  openSync,
  realpathSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { discover } from "../../command/discover.ts";
import { messageOf, UsageError } from "../../errors.ts";
import type { Home } from "../../paths.ts";
import { thisProgram } from "../../program/program.ts";
import { configNames } from "../../project/project.ts";
import { fileMode, folderMode, makeCommandFolder, type NewFiles } from "./made-folder.ts";

/** A project that is to be, and where. */
export interface NewProject {
  /** The whole path of its folder, which may be missing. */
  readonly folder: string;
  readonly files: NewFiles;
}

const cure = () =>
  `nothing was written; name a new folder, as in \`${thisProgram.name} init my-tools\`, or add a command to what is there with \`${thisProgram.name} new report/build\``;

/**
 * Throws one sentence where a project cannot be made without touching something that is there. Looks only: no code is
 * run, nothing is written.
 */
export function refuseExisting({ folder, files }: NewProject): void {
  const place = nearest(folder);
  if (!place.isFolder)
    throw new UsageError(
      place.path === folder
        ? `${folder} is no folder, so no project can be made there; name another one.`
        : `${place.path} is no folder, so ${folder} cannot be made; name another one.`,
    );
  if (place.path !== folder) return;
  for (const name of Object.keys(files)) {
    refuseParents(folder, name);
    if (isThere(path.join(folder, name))) throw exists(path.join(folder, name));
  }
  for (const name of configNames) if (isThere(path.join(folder, name))) throw exists(path.join(folder, name));
  const own = discover(path.join(folder, "commands")).find(({ toolName }) => toolName === "report_build");
  if (own !== undefined) throw exists(own.file);
}

function exists(file: string): UsageError {
  return new UsageError(`${file} exists already, so ${cure()}.`);
}

/** The folder itself, or the first thing above it that is there. */
function nearest(folder: string): { readonly path: string; readonly isFolder: boolean } {
  for (let at = folder; ; at = path.dirname(at)) {
    if (isThere(at)) return { path: at, isFolder: statSync(at, { throwIfNoEntry: false })?.isDirectory() === true };
    if (at === path.dirname(at)) return { path: at, isFolder: true };
  }
}

/** A link is there also when it leads nowhere. */
function isThere(file: string): boolean {
  try {
    return lstatSync(file, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOTDIR") return false;
    throw new UsageError(`Cannot look at ${file}: ${messageOf(error)}; name a folder you may write.`, { cause: error });
  }
}

/** The folders that a file is to lie in: each is missing, or a folder inside of the project's. */
function refuseParents(folder: string, name: string): void {
  const words = name.split("/").slice(0, -1);
  for (const at of words.keys()) {
    const parent = path.join(folder, ...words.slice(0, at + 1));
    if (!isThere(parent)) return;
    if (statSync(parent, { throwIfNoEntry: false })?.isDirectory() !== true)
      throw new UsageError(`${parent} is no folder, and ${name} was to be in it, so ${cure()}.`);
    const real = realpathSync(parent);
    if (!real.startsWith(path.join(realpathSync(folder), path.sep)))
      throw new UsageError(`${parent} leads out of the folder, to ${real}, so ${cure()}.`);
  }
}

/** Writes a project that nothing stands in the way of: all of it, or, where that fails, nothing. */
export function writeProject({ folder, files }: NewProject, home: Home): void {
  const undo: (() => void)[] = [];
  try {
    makeFolder(folder, undo);
    const commands = path.join(folder, "commands");
    const isFirst = !isThere(commands);
    const isLater = (name: string) => isFirst && name.startsWith("commands/");
    for (const [name, text] of Object.entries(files)) {
      if (isLater(name)) continue;
      makeFolder(path.dirname(path.join(folder, name)), undo);
      writeFile(path.join(folder, name), text, undo);
    }
    // Last, because a session that is connected here begins with it, and finds the config there.
    if (isFirst)
      makeCommandFolder(
        home,
        commands,
        Object.fromEntries(
          Object.entries(files).flatMap(([name, text]) =>
            isLater(name) ? [[name.slice("commands/".length), text]] : [],
          ),
        ),
      );
  } catch (cause) {
    for (const step of undo.toReversed()) step();
    throw new UsageError(
      `Cannot make a project in ${folder}: ${messageOf(cause)}; nothing was written; name a folder you may write.`,
      { cause },
    );
  }
}

/** Makes a folder with those above it; whoever undoes it leaves what others have put there by then. */
function makeFolder(folder: string, undo: (() => void)[]): void {
  if (isThere(folder)) return;
  makeFolder(path.dirname(folder), undo);
  mkdirSync(folder, { mode: folderMode });
  undo.push(() => {
    try {
      rmdirSync(folder);
    } catch {
      // Somebody else's file is in there.
    }
  });
}

/** `wx` opens nothing that is there, a link least of all. */
function writeFile(file: string, text: string, undo: (() => void)[]): void {
  const opened = openSync(file, "wx", path.basename(path.dirname(file)) === "bin" ? folderMode : fileMode);
  undo.push(() => rmSync(file, { force: true }));
  try {
    writeFileSync(opened, text);
  } finally {
    closeSync(opened);
  }
}
