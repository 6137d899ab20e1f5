import { accessSync, constants, existsSync, readFileSync, statSync } from "node:fs";
import path from "node:path";
import { CommandError, messageOf } from "../../errors.ts";
import { ensureHome, type Home, homeAt, type ProcessEnvironment, packageFolder, writePrivately } from "../../paths.ts";
import { thisProgram } from "../../program/program.ts";
import { executable, programVersion } from "../../project/project.ts";
import { isFetchedByNpx, scriptEnding } from "../launch.ts";
import { type Installation, installationOf, isSameFile, lastingPath } from "./installation.ts";
import { type LauncherFacts, ownRangeFile, readLauncherFacts, toLauncherTexts } from "./launcher-text.ts";

/**
 * The launcher in the home, which entries in a user's own files name. It finds a Node again after an upgrade, and starts
 * the original server of a wrapped entry where it cannot start the package.
 */

/** True where the package has the files that a launcher is made of; a bundled program may lack them. */
export function hasLauncherParts(): boolean {
  return existsSync(path.join(packageFolder(), "bin", "launcher.sh"));
}

const launcherMode = 0o700;

/** The Node that runs this process. */
export interface RunningNode {
  readonly file: string;
  readonly version: string;
  /** The path of the script that it was started with; it may be a link. */
  readonly script?: string | undefined;
  readonly isWindows: boolean;
}

/** What a launcher of this process starts; the path stays as the launcher `found` has it for the same file. */
function ownFacts(
  home: Home,
  env: ProcessEnvironment,
  node: RunningNode,
  found: LauncherFacts | undefined,
): LauncherFacts {
  const usual = homeAt({ ...env, [thisProgram.variable("HOME")]: undefined });
  const version = programVersion();
  const file = lastingPath(executable(), [...globalScript(node), ...(found === undefined ? [] : [found.package])]);
  return {
    version,
    node: node.file,
    nodeVersion: node.version,
    package: file,
    rangeFile: lastingPath(ownRangeFile(), [path.join(path.dirname(file), path.basename(ownRangeFile()))]),
    ...(isFetchedByNpx(file) && { npx: `${thisProgram.packageName}@${version}` }),
    ...(home.folder !== usual.folder && { home: home.folder }),
  };
}

/** The script that Node was started with, where that is an executable in a global installation. */
function globalScript({ script = "" }: RunningNode): string[] {
  const isExecutable = path.basename(script) === path.basename(executable());
  return isExecutable && installationOf(script) === "global" ? [script] : [];
}

/** Writes the launcher for `setup`, unless the one that is there starts a copy that stays longer than this one. */
export function writeLauncher(home: Home, env: ProcessEnvironment, node: RunningNode): void {
  const found = readLauncher(home, node);
  const facts = ownFacts(home, env, node, found);
  if (found !== undefined && outlasts(found, facts)) return;
  try {
    ensureHome(home);
    write(home, facts, node);
  } catch (cause) {
    throw new CommandError(
      `Nothing was changed: the launcher ${home.launcher} cannot be written: ${messageOf(cause)}.`,
      { cause },
    );
  }
  if (!node.isWindows && !canRun(home.launcher))
    throw new CommandError(`Nothing was changed: hosts cannot run ${home.launcher}, ${whyNotRun(home.launcher)}.`);
}

function whyNotRun(file: string): string {
  const variable = thisProgram.variable("HOME");
  const mode = statSync(file).mode & 0o777;
  if ((mode & 0o100) !== 0)
    return `because its file system is mounted with noexec; set ${variable} to a folder on another one`;
  const [found, wanted] = [mode, launcherMode].map((one) => one.toString(8).padStart(4, "0"));
  return `because it got the mode ${found} in place of ${wanted} from the umask or its file system; change the umask, or set ${variable} to a folder on another file system`;
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
 * Replaces the launcher of the home, where there is one, when this copy takes it over. Does nothing where the file cannot be written: the launcher itself looks for a Node then.
 */
export function refreshLauncher(home: Home, env: ProcessEnvironment, node: RunningNode): void {
  try {
    const found = readLauncher(home, node);
    if (found === undefined || !hasLauncherParts()) return;
    const facts = ownFacts(home, env, node, found);
    if (takesOver(facts, found)) write(home, facts, node);
  } catch {
    // A home that nobody may write keeps its launcher.
  }
}

/** What the launcher of a home starts; undefined where there is none. */
export function readLauncher(home: Home, { isWindows }: Pick<RunningNode, "isWindows">): LauncherFacts | undefined {
  const file = isWindows ? `${home.launcher}${scriptEnding}` : home.launcher;
  return existsSync(file) ? readLauncherFacts(readFileSync(file, "utf8")) : undefined;
}

const byDuration: readonly Installation[] = ["project", "npx", "clone", "global"];

/** True when `setup` leaves a launcher to another copy than its own: its own may be removed any day, and that one less. */
function outlasts(found: LauncherFacts, own: LauncherFacts): boolean {
  const kind = installationOf(own.package);
  if (kind === "global" || kind === "clone" || !works(found)) return false;
  return byDuration.indexOf(installationOf(found.package)) > byDuration.indexOf(kind);
}

/** npx fetches its copy again once that is gone. */
const works = (found: LauncherFacts) => found.npx !== undefined || existsSync(found.package);

/**
 * True when a copy that was started takes over the launcher of the home: when the launcher starts an older version of
 * the same copy, or a copy that is gone. From another copy that works only a global installation takes it over, and one
 * npx copy from another: a project and a clone may be removed, and every entry would then run its server alone.
 */
export function takesOver(own: LauncherFacts, found: LauncherFacts): boolean {
  const [kind, other] = [own, found].map((facts) => installationOf(facts.package)) as [Installation, Installation];
  const mayReplaceOther = kind === "global" || (kind === "npx" && other === "npx");
  if (!existsSync(found.package)) return mayReplaceOther || found.npx === undefined;
  const isSame = isSameFile(own.package, found.package);
  if (!isSame && !mayReplaceOther) return false;
  if (own.version !== found.version) return isNewer(own.version, found.version);
  const isTemporary = other === "npx" || other === "project";
  return !existsSync(found.node) || (kind === "global" && !isSame && isTemporary);
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
    const isSame = existsSync(file) && readFileSync(file, "utf8") === text && (isWindows || canRun(file));
    if (!isSame) writePrivately(file, text, launcherMode);
  }
}
