import { isDeepStrictEqual } from "node:util";
import { CommandError, messageOf } from "../errors.ts";
import { type ConfigFile, readConfigFile, removeEmptyFolders, replaceFile } from "./config-file.ts";
import type { Entry, SetupHost, SetupScope } from "./host.ts";
import { jsonText } from "./json-text.ts";
import { digestOfEntry, isOurEntry } from "./ownership.ts";
import { type Deed, digestOf, type SetupRecord } from "./setup-record.ts";
import type { TextFormat } from "./text-format.ts";
import { tomlText } from "./toml-text.ts";

/** One host's file, and our name in it. */
export interface SetupTarget {
  readonly host: SetupHost;
  readonly scope: SetupScope;
  readonly file: string;
  readonly name: string;
}

/** What would be done to a file. */
export interface ConfigChange {
  readonly kind: "added" | "updated" | "unchanged" | "removed" | "restored" | "absent";
  readonly target: SetupTarget;
  readonly before: ConfigFile;
  /** The whole file afterwards; nothing when it is removed. */
  readonly bytes: Buffer | undefined;
  /** How many objects around the entry would be ours. */
  readonly made: number;
  /** The entry afterwards, when there is one of ours. */
  readonly entry?: unknown;
  /** The entry before was somebody else's. */
  readonly isForeign?: boolean;
}

/**
 * The entry of our name in a file: none, just as it would be written, ours with other content, or one that setup did
 * not write.
 */
export type EntryState = "none" | "same" | "other" | "foreign";

export const formats: Readonly<Record<SetupHost["format"], TextFormat>> = { json: jsonText, toml: tomlText };

/** Looks without touching. Throws when the file cannot be read. */
export function findEntry(target: SetupTarget, record: SetupRecord, entry: Entry): EntryState {
  const { before, config, keys } = open(target);
  const found = at(config, keys);
  if (found === undefined) return "none";
  if (holds(found, entry)) return "same";
  return isOurEntry(found, record.find(before.file, target.name)) ? "other" : "foreign";
}

/** What adding our entry would change. Refuses an entry that setup did not write, unless it is to be replaced. */
export function planAdd(
  target: SetupTarget,
  record: SetupRecord,
  { entry, isReplacing }: { readonly entry: Entry; readonly isReplacing: boolean },
): ConfigChange {
  const { before, config, keys, format } = open(target);
  const found = at(config, keys);
  const unchanged: ConfigChange = { kind: "unchanged", target, before, bytes: before.bytes, made: 0 };
  if (isReplacing ? isDeepStrictEqual(found, entry) : found !== undefined && holds(found, entry)) return unchanged;
  const isForeign = found !== undefined && !isOurEntry(found, record.find(before.file, target.name));
  if (isForeign && !isReplacing)
    throw notOurs(target, "give ours another name with --name, or put ours in its place with --replace");
  const text = refuseByName(target, () => write(format, before.text, { keys, entry, found, isKept: !isReplacing }));
  const after = format.read(text);
  checkOthers(target, config, after, keys);
  const made =
    keys.length - 1 - keys.slice(0, -1).filter((_, depth) => at(config, keys.slice(0, depth + 1)) !== undefined).length;
  return {
    ...unchanged,
    kind: found === undefined ? "added" : "updated",
    bytes: toBytes(before, text),
    made,
    entry: at(after, keys),
    isForeign,
  };
}

function notOurs({ host, file, name }: SetupTarget, cure: string): CommandError {
  return new CommandError(
    `${file} was left alone: the entry ${name} that ${host.title} has there was not written by setup; ${cure}.`,
  );
}

/** Our own entry keeps what its user added; one that is replaced leaves nothing behind, least of all its variables. */
function write(
  format: TextFormat,
  text: string,
  options: { keys: readonly string[]; entry: Entry; found: unknown; isKept: boolean },
): string {
  const { keys, entry, found, isKept } = options;
  if (!isKept || !isObject(found))
    return format.set(found === undefined ? text : format.remove(text, keys), keys, entry);
  return Object.entries(entry).reduce(
    (left, [key, value]) => format.set(left, [...keys, key], merge(found[key], value)),
    text,
  );
}

/** Variables that the user added stay. */
function merge(found: unknown, value: unknown): unknown {
  return isObject(found) && isObject(value) ? { ...found, ...value } : value;
}

/** What removing our entry would change. One that setup neither wrote nor would write is not ours to remove. */
export function planRemove(target: SetupTarget, record: SetupRecord, entry: Entry): ConfigChange {
  const { before, config, keys, format } = open(target);
  const unchanged: ConfigChange = { kind: "absent", target, before, bytes: before.bytes, made: 0 };
  const found = at(config, keys);
  if (before.bytes === undefined || found === undefined) return unchanged;
  const deed = record.find(before.file, target.name);
  if (!holds(found, entry) && (deed === undefined || !isOurEntry(found, deed)))
    throw notOurs(target, "take it out by hand if you want it gone");
  const isAsLeft = deed?.after === digestOf(before.bytes);
  const kind = deed?.earlier === undefined ? "removed" : "restored";
  if (isAsLeft && deed.before === null) return { ...unchanged, kind, bytes: undefined };
  const restored = isAsLeft && typeof deed.before === "string" ? record.restore(before.file, deed.before) : undefined;
  if (restored !== undefined) return { ...unchanged, kind, bytes: restored };
  if (deed?.earlier !== undefined)
    return { ...unchanged, kind, bytes: putBack(target, record.restore(before.file, deed.earlier)) };
  const text = refuseByName(target, () => removeWithParents(format, before.text, keys, deed?.made ?? 0));
  checkOthers(target, config, format.read(text), keys);
  const isOurs = deed?.isNewFile === true && text.trim() === format.nothing.trim();
  return { ...unchanged, kind: "removed", bytes: isOurs ? undefined : toBytes(before, text) };
}

/** The file with the entry in it that was there before ours, out of the backup; everything else stays as it is now. */
function putBack(target: SetupTarget, backup: Buffer | undefined): Buffer {
  const { before, config, keys, format } = open(target);
  const old = backup === undefined ? undefined : format.read(backup.toString("utf8").replace(/^\uFEFF/, ""));
  const earlier = old === undefined ? undefined : at(old, [...target.host.place(old), target.name]);
  if (earlier === undefined)
    throw new CommandError(
      `${target.file} was left alone: the backup of the entry ${target.name} that was there before is gone; change the entry by hand.`,
    );
  const text = refuseByName(target, () => format.set(format.remove(before.text, keys), keys, earlier));
  checkOthers(target, config, format.read(text), keys);
  return toBytes(before, text);
}

/** Objects around the entry go too, if they are ours and nobody else uses them. */
function removeWithParents(format: TextFormat, text: string, keys: readonly string[], made: number): string {
  let left = format.remove(text, keys);
  for (let depth = keys.length - 1; depth >= keys.length - made; depth--) {
    const parent = at(format.read(left), keys.slice(0, depth));
    if (isObject(parent) && Object.keys(parent).length === 0) left = format.remove(left, keys.slice(0, depth));
  }
  return left;
}

/** Does it, after keeping a copy. Gives where the copy is; none is needed for a file that is ours alone. */
export function applyChange(change: ConfigChange, record: SetupRecord): { readonly backup: string | undefined } {
  const { target, before, bytes, kind } = change;
  if (kind === "unchanged" || kind === "absent") return { backup: undefined };
  record.prepare();
  // Whoever wrote another entry in place of ours has ended what we knew of it.
  const deed = change.isForeign === true ? undefined : record.find(before.file, target.name);
  const isOurs = before.bytes === undefined || (deed?.before === null && deed.after === digestOf(before.bytes));
  const backup = isOurs || before.bytes === undefined ? undefined : record.backUp(before.file, before.bytes);
  const folders = replaceFile({
    file: before.file,
    expected: before.bytes,
    bytes,
    mode: target.scope === "user" ? 0o600 : 0o644,
  });
  if (kind !== "removed" && kind !== "restored") record.keep(toDeed(change, deed, folders));
  else {
    record.forget(before.file, target.name);
    if (bytes === undefined) removeEmptyFolders(deed?.folders ?? []);
  }
  return { backup };
}

function toDeed(
  { kind, target, before, bytes, made, entry }: ConfigChange,
  earlier: Deed | undefined,
  folders: readonly string[],
): Deed {
  const now = {
    file: before.file,
    name: target.name,
    after: digestOf(bytes ?? Buffer.alloc(0)),
    entry: digestOfEntry(entry),
  };
  if (kind === "added") {
    const isNewFile = before.bytes === undefined;
    return { ...now, before: before.bytes === undefined ? null : digestOf(before.bytes), isNewFile, made, folders };
  }
  if (earlier === undefined) {
    const found = digestOf(before.bytes ?? Buffer.alloc(0));
    return { ...now, before: found, earlier: found, isNewFile: false, made: 0, folders: [] };
  }
  const isAsLeft = before.bytes !== undefined && earlier.after === digestOf(before.bytes);
  if (isAsLeft) return { ...earlier, ...now };
  // Nor may what others wrote since be lost.
  const { before: _outdated, ...rest } = earlier;
  return { ...rest, ...now };
}

function open(target: SetupTarget) {
  const format = formats[target.host.format];
  const before = readConfigFile(target.file);
  const config = refuseByName(target, () => format.read(before.text));
  const keys = [...target.host.place(config), target.name];
  return { before, config, keys, format };
}

/** A file that cannot be understood is named, and left alone. */
export function refuseByName<T>(target: Pick<SetupTarget, "file">, act: () => T): T {
  try {
    return act();
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    throw new CommandError(`${target.file} was left alone: ${messageOf(error)}.`, { cause: error });
  }
}

/** The last guard before anything is written: nothing but our entry may be different. */
function checkOthers(target: SetupTarget, before: unknown, after: unknown, keys: readonly string[]): void {
  if (!isDeepStrictEqual(without(before, keys), without(after, keys))) {
    throw new CommandError(
      `${target.file} was left alone: other settings would have changed, which is a bug of ours; please report it.`,
    );
  }
}

/** A copy without the entry, and without the objects around it that are empty then. */
function without(value: unknown, [key, ...rest]: readonly string[]): unknown {
  if (!isObject(value) || key === undefined || !Object.hasOwn(value, key)) return value;
  const { [key]: inner, ...others } = value;
  const left = rest.length === 0 ? undefined : without(inner, rest);
  return left === undefined || (isObject(left) && Object.keys(left).length === 0) ? others : { ...others, [key]: left };
}

export function at(value: unknown, keys: readonly string[]): unknown {
  return keys.reduce<unknown>(
    (inner, key) => (isObject(inner) && Object.hasOwn(inner, key) ? inner[key] : undefined),
    value,
  );
}

/** True when everything in our entry is there as we would write it; more may be. */
function holds(found: unknown, entry: unknown): boolean {
  if (!isObject(found) || !isObject(entry)) return isDeepStrictEqual(found, entry);
  return Object.entries(entry).every(([key, value]) => holds(found[key], value));
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function toBytes(before: ConfigFile, text: string): Buffer {
  return Buffer.from(`${before.mark}${text}`, "utf8");
}
