import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { thisProgram } from "../../program/program.ts";
import { at } from "../change.ts";
import type { Entry, Launch } from "../host.ts";
import { entryStoreVariable, type StartFacts, scriptEnding, toStart } from "../launch.ts";
import { type LauncherFacts, readLauncherFacts } from "../launcher/launcher-text.ts";
import { isEarlierStart, startOf } from "../ownership.ts";
import { toHunk, undoHunk } from "./hunk.ts";
import { unwrapEntry, writeBack } from "./plan-unwrap.ts";
import { changeEntries, type EntryEdit, type FoundEntry, type OpenedFile, type WrapChange } from "./wrap-file.ts";
import type { WrapDeed, WrapRecord } from "./wrap-record.ts";
import { envKeyOf, withCommand, withoutVariables } from "./wrapped-entry.ts";

/**
 * Entries of ours that an upgrade of Node or of the package breaks, or has broken: earlier versions wrote the paths of
 * one Node and one copy of the package into them.
 */

export interface RepairMeans {
  readonly facts: StartFacts;
  readonly record: WrapRecord;
}

/** True for an entry that names a Node and a copy of the package, or a program or a launcher that is gone. */
export function needsRepair(entry: unknown, { launcher }: Pick<StartFacts, "launcher">): boolean {
  const program = programOf(entry);
  if (launcher === undefined || program.length === 0) return false;
  const isNode = /^node(?:\.exe)?$/i.test(program[0]?.split(/[\\/]/).at(-1) ?? "");
  return (isNode && isEarlierStart(entry)) || program.some(isGone);
}

/** What stands in front of the arguments of ours, without the flag of `cmd /c`, which looks like a path. */
function programOf(entry: unknown): readonly string[] {
  const program = startOf(entry)?.program ?? [];
  return program.filter((word, at) => at !== 1 || word.toLowerCase() !== "/c");
}

/** What repairing the entries of a file that need it would change. */
export function planRepair(opened: OpenedFile, means: RepairMeans): WrapChange {
  const chosen = opened.entries.filter(({ entry }) => needsRepair(entry, means.facts));
  return changeEntries(opened, "wrapped", { chosen, edit: (text, found) => repairEntry(opened, text, found, means) });
}

/** Has the launcher start an entry; the arguments of ours stay, and so does everything else in it. */
export function repairEntry(
  opened: OpenedFile,
  text: string,
  found: FoundEntry,
  { facts, record }: RepairMeans,
): EntryEdit {
  const { format, before, target } = opened;
  const { keys } = found;
  const now = found.entry as Entry;
  const deed = record.find(before.file, keys);
  const written = deed === undefined ? facts.env : writtenVariables(deed, envKeyOf(now, target.host));
  const store = written[thisProgram.variable("STORE")];
  const { command, args } = toStart(facts, startOf(now)?.own ?? []);
  const entry = withCommand(
    isWrapped(now) ? withoutVariables(now, written) : now,
    [command, ...args],
    isWrapped(now) && store !== undefined ? { [entryStoreVariable()]: store } : {},
  ).entry;
  const changed = writeBack(format, text, { keys, now, entry });
  return { text: changed, entry, deed: toDeed(opened, { text, changed, found, deed, entry }), isRepaired: true };
}

const isWrapped = (entry: Entry) => startOf(entry)?.own[0] === "wrap";

/** The home and the store that an earlier version wrote into the entry, where the entry had none before. */
function writtenVariables({ before, after }: WrapDeed, envKey: string): Launch["env"] {
  const names = ["HOME", "STORE"].map((name) => thisProgram.variable(name));
  const pairs = names.map((name) => [name, at(after, [envKey, name])] as const);
  const isOurs = (name: string) => at(before, [envKey, name]) === undefined;
  return Object.fromEntries(
    pairs.filter((pair): pair is [string, string] => typeof pair[1] === "string" && isOurs(pair[0])),
  );
}

/** What brings the original entry back byte for byte; undefined where the entry itself has to say what it was. */
function toDeed(
  opened: OpenedFile,
  given: { text: string; changed: string; found: FoundEntry; deed: WrapDeed | undefined; entry: Entry },
): WrapDeed | undefined {
  const { text, changed, found, deed, entry } = given;
  if (deed === undefined) return undefined;
  const { format } = opened;
  const { keys } = found;
  const original = unwrapEntry(opened, text, { found, deed, own: {} });
  if ("why" in original) return undefined;
  const [was, is] = [format.spanOf(original.text, keys), format.spanOf(changed, keys)];
  const lines = toHunk(original.text.slice(was.from, was.to), changed.slice(is.from, is.to));
  const isWayBack = (inner: string) => changed.slice(0, is.from) + inner + changed.slice(is.to) === original.text;
  if (![...undoHunk(changed.slice(is.from, is.to), lines)].some(isWayBack)) return undefined;
  return { file: deed.file, keys, lines, before: original.entry, after: entry };
}

/** True for an entry as it stands in a project's file: `npx --no`, which runs what the project has installed. */
export function isProjectStart(entry: unknown): boolean {
  const [npx, ...flags] = startOf(entry)?.program ?? [];
  return npx === "npx" && flags.includes("--no");
}

/** Returns why an entry of ours would not start, or not start the package; undefined where nothing is known against it. */
export function whyNotStarted(entry: unknown): string | undefined {
  const program = programOf(entry);
  const own = startOf(entry)?.own ?? [];
  const missing = program.find(isGone);
  if (missing !== undefined) return `${missing} is gone`;
  const folder = own[0] === "-C" ? own[1] : undefined;
  if (isGone(folder)) return `the folder ${folder} is gone`;
  const last = program.at(-1) ?? "";
  const isLauncher = path.isAbsolute(last) && (program.length === 1 || last.endsWith(scriptEnding));
  const launcher = isLauncher ? last : undefined;
  const facts = launcher === undefined ? undefined : readLauncherAt(launcher);
  return facts?.npx === undefined && isGone(facts?.package) ? `${facts?.package} is gone` : undefined;
}

/** A name without a folder is looked for on a PATH that only the host knows. */
const isGone = (file: string | undefined) => file !== undefined && path.isAbsolute(file) && !existsSync(file);

/** Returns what the launcher starts that an entry names; undefined where it names another program. */
export function readLauncherAt(launcher: string): LauncherFacts | undefined {
  const file = launcher.replace(/\.cmd$/i, scriptEnding);
  try {
    return readLauncherFacts(readFileSync(file, "utf8"));
  } catch {
    return undefined;
  }
}
