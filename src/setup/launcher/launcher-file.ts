import { accessSync, constants, existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { CommandError, messageOf } from "../../errors.ts";
import { ensureHome, type Home, homeAt, type ProcessEnvironment, packageFolder, writePrivately } from "../../paths.ts";
import { thisProgram } from "../../program/program.ts";
import { executable, programVersion } from "../../project/project.ts";
import { isFetchedByNpx, scriptEnding } from "../launch.ts";
import { type LauncherFacts, ownRangeFile, readLauncherFacts, toLauncherTexts } from "./launcher-text.ts";

/**
 * The launcher in the home, which entries in a user's own files name. It finds a Node again after an upgrade, and starts
 * the original server of a wrapped entry where it cannot start the package.
 */

/** True where the package has the files that a launcher is made of; a bundled program may lack them. */
export function hasLauncherParts(): boolean {
  return existsSync(path.join(packageFolder(), "bin", "launcher.sh"));
}

/** The Node that runs this process. */
export interface RunningNode {
  readonly file: string;
  readonly version: string;
  readonly isWindows: boolean;
}

/** What a launcher of this process starts. */
function ownFacts(home: Home, env: ProcessEnvironment, node: RunningNode): LauncherFacts {
  const usual = homeAt({ ...env, [thisProgram.variable("HOME")]: undefined });
  const version = programVersion();
  const file = executable();
  return {
    version,
    node: node.file,
    nodeVersion: node.version,
    package: file,
    rangeFile: ownRangeFile(),
    ...(isFetchedByNpx(file) && { npx: `${thisProgram.packageName}@${version}` }),
    ...(home.folder !== usual.folder && { home: home.folder }),
  };
}

/** Writes the launcher for `setup`, unless the one that is there starts a copy that npx may not clear away. */
export function writeLauncher(home: Home, env: ProcessEnvironment, node: RunningNode): void {
  const facts = ownFacts(home, env, node);
  const found = readLauncher(home, node);
  if (found !== undefined && facts.npx !== undefined && found.npx === undefined && !isOutdated(found, facts)) return;
  try {
    ensureHome(home);
    write(home, facts, node);
  } catch (cause) {
    throw new CommandError(
      `Nothing was changed: the launcher ${home.launcher} cannot be written: ${messageOf(cause)}.`,
      { cause },
    );
  }
  if (!canRun(home.launcher) && !node.isWindows)
    throw new CommandError(
      `Nothing was changed: hosts cannot run ${home.launcher}, because its file system is mounted with noexec; set ${thisProgram.variable("HOME")} to a folder on another one.`,
    );
}

function canRun(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/**
 * Replaces the launcher of the home, where there is one, when it starts an older version, or a copy or a Node that is
 * gone. Does nothing where the file cannot be written: the launcher itself looks for a Node then.
 */
export function refreshLauncher(home: Home, env: ProcessEnvironment, node: RunningNode): void {
  try {
    const found = readLauncher(home, node);
    if (found === undefined || !hasLauncherParts()) return;
    const facts = ownFacts(home, env, node);
    if (isOutdated(found, facts)) write(home, facts, node);
  } catch {
    // A home that nobody may write keeps its launcher.
  }
}

/** What the launcher of a home starts; undefined where there is none. */
export function readLauncher(home: Home, { isWindows }: Pick<RunningNode, "isWindows">): LauncherFacts | undefined {
  const file = isWindows ? `${home.launcher}${scriptEnding}` : home.launcher;
  return existsSync(file) ? readLauncherFacts(readFileSync(file, "utf8")) : undefined;
}

function isOutdated(found: LauncherFacts, own: LauncherFacts): boolean {
  if (!existsSync(found.package)) return true;
  // What npx has fetched may be cleared away, so it replaces no copy that stays.
  if (own.npx !== undefined && found.npx === undefined) return false;
  return isNewer(own.version, found.version) || (own.version === found.version && !existsSync(found.node));
}

/** True when one version comes after another. A version with a suffix, such as 1.2.0-beta.1, comes before 1.2.0. */
function isNewer(version: string, than: string): boolean {
  const [left, right] = [version, than].map((text) => {
    const [numbers = "", suffix] = text.split(/-(.*)/s);
    return [...numbers.split(".").map(Number), suffix === undefined ? 1 : 0];
  }) as [number[], number[]];
  const at = left.findIndex((part, index) => part !== right[index]);
  return at >= 0 && (left[at] ?? 0) > (right[at] ?? 0);
}

/** By rename, so that a host that starts the launcher now gets the old one or the new one. */
function write(home: Home, facts: LauncherFacts, { isWindows }: RunningNode): void {
  for (const [ending, text] of Object.entries(toLauncherTexts(facts, isWindows))) {
    const file = `${home.launcher}${ending}`;
    if (!existsSync(file) || readFileSync(file, "utf8") !== text) writePrivately(file, text, 0o700);
  }
}
