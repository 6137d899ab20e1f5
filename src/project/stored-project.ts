import { existsSync, readFileSync, realpathSync, rmSync, statSync } from "node:fs";
import path from "node:path";
import { type Home, writePrivately } from "../paths.ts";
import { thisProgram } from "../program/program.ts";
import { fingerprint } from "./project.ts";

/**
 * What is known of a project without running any of its code: what its config said when it was last loaded, which
 * variables its code reads, and whether this user has made it here. All of it is kept in the user's home, where nothing
 * that lies in a project's folder can write.
 */

/** What a config file written as code said when it was last loaded. */
export interface StoredConfig {
  readonly said: unknown;
  /** False when the file's text is another by now. */
  readonly isCurrent: boolean;
}

/** A longer one is not kept, and is loaded each time. */
const maxConfigBytes = 256 * 1024;

const configFileOf = (home: Home, file: string) => path.join(home.runFolder, `config-${fingerprint(file)}.said`);

/** Undefined when this file has never been loaded. */
export function readStoredConfig(home: Home, file: string): StoredConfig | undefined {
  const real = realpathSync(file);
  const stored = readJson(configFileOf(home, real));
  // The whole path and text are compared: two that look alike to `fingerprint` are still two.
  if (stored?.file !== real) return undefined;
  return { said: stored.said, isCurrent: stored.text === readText(real) };
}

/** Keeps what can be written down of a config that was loaded from this text. */
export function storeConfig(
  home: Home,
  file: string,
  { text, said }: { readonly text: string | undefined; readonly said: unknown },
): void {
  if (text === undefined) return;
  try {
    const real = realpathSync(file);
    // What changed while it was loaded may not be what was loaded.
    if (readText(real) !== text) return;
    const next = JSON.stringify({ file: real, text, said });
    const kept = configFileOf(home, real);
    if (next !== readText(kept)) writePrivately(kept, next);
  } catch {
    // Without it the config is loaded again; an unusable home is reported by whoever needs it.
  }
}

/** From now on it is as if this config had never been loaded. */
export function forgetConfig(home: Home, file: string): void {
  rmSync(configFileOf(home, realpathSync(file)), { force: true });
}

const namesFileOf = (home: Home, parts: readonly string[]) =>
  path.join(home.runFolder, `env-${fingerprint(parts)}.names`);

/** The variables that the code of a project read when it was last looked at; none where nobody has looked. */
export function readStoredNames(home: Home, parts: readonly string[]): string[] {
  const { parts: whose, names } = readJson(namesFileOf(home, parts)) ?? {};
  if (JSON.stringify(whose) !== JSON.stringify(parts) || !Array.isArray(names)) return [];
  return names.filter((name) => typeof name === "string");
}

/** Keeps the names, never a value. */
export function storeNames(home: Home, parts: readonly string[], names: readonly string[]): void {
  if (JSON.stringify(readStoredNames(home, parts)) === JSON.stringify(names)) return;
  try {
    writePrivately(namesFileOf(home, parts), JSON.stringify({ parts, names }));
  } catch {
    // Without them a front asks once more; an unusable home is reported by whoever needs it.
  }
}

/** What to tell whoever asks about a project whose config is code, and is not run for that. */
export function unloadedNotice(configFile: string, wasLoaded: boolean): string {
  const name = path.basename(configFile);
  return `${name} ${wasLoaded ? "has changed since it was last loaded" : "has not been loaded yet"}; \`${thisProgram.name} tools\` loads it.`;
}

/** The text of a file, unless it is none, or too long to be a config. */
export function readText(file: string): string | undefined {
  const stat = statSync(file, { throwIfNoEntry: false });
  return stat?.isFile() === true && stat.size <= maxConfigBytes ? readFileSync(file, "utf8") : undefined;
}

const noteOf = (home: Home, folder: string) => path.join(home.runFolder, `made-${fingerprint(path.resolve(folder))}`);

/**
 * Notes that this user has just made a folder of commands, which is still called `aside`, before it is there under its
 * name.
 */
export function rememberMade(home: Home, folder: string, aside: string): void {
  writePrivately(noteOf(home, folder), JSON.stringify({ folder: path.resolve(folder), ...identityOf(aside) }));
}

/** Whether the folder of commands that is there is the one this user has made, and no other of the same name. */
export function isMade(home: Home, folder: string): boolean {
  const note = readJson(noteOf(home, folder));
  const there = identityOf(folder);
  return (
    note !== undefined &&
    there !== undefined &&
    note.folder === path.resolve(folder) &&
    note.inode === there.inode &&
    note.born === there.born
  );
}

/**
 * A project's folders are its own, also those that come later. Where there was none, one that comes is served if this
 * user has made it.
 */
export function servedFolders(project: {
  readonly configFile: string | undefined;
  readonly commandFolders: readonly string[];
  readonly home: Home;
}): (folder: string) => boolean {
  const missing =
    project.configFile === undefined ? project.commandFolders.filter((folder) => !existsSync(folder)) : [];
  return (folder) => !missing.includes(folder) || isMade(project.home, folder);
}

function identityOf(folder: string): { readonly inode: string; readonly born: string } | undefined {
  const stat = statSync(folder, { bigint: true, throwIfNoEntry: false });
  return stat === undefined ? undefined : { inode: `${stat.dev}:${stat.ino}`, born: String(stat.birthtimeNs) };
}

/** Undefined for what is not there, is damaged, or holds no object. */
function readJson(file: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const parsed = JSON.parse(readFileSync(file, "utf8")) as unknown;
    return typeof parsed === "object" && parsed !== null ? (parsed as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

/** Keeps where a project lies, so that `stats --all` can name it. */
export function rememberPlace(home: Home, project: string, place: string): void {
  const file = path.join(home.runFolder, `project-${project}.place`);
  if (readText(file) === place) return;
  try {
    writePrivately(file, place);
  } catch {
    // Without it the project is told by its id.
  }
}

/** Where a project lies; undefined when nobody has kept it. */
export function placeOfProject(home: Home, project: string): string | undefined {
  return /^[\w-]+$/.test(project) ? readText(path.join(home.runFolder, `project-${project}.place`)) : undefined;
}
