import { isDeepStrictEqual } from "node:util";
import { CommandError, messageOf } from "../../errors.ts";
import { at, formats, isObject, refuseByName, toBytes } from "../change.ts";
import { type ConfigFile, readConfigFile, replaceFile } from "../config-file.ts";
import type { Entry, SetupHost, SetupScope } from "../host.ts";
import type { SetupRecord } from "../setup-record.ts";
import type { TextFormat } from "../text-format.ts";
import type { WrapDeed, WrapRecord } from "./wrap-record.ts";
import type { EntryPlan } from "./wrapped-entry.ts";

/** One host's file, whose entries are somebody's. */
export interface WrapTarget {
  readonly host: SetupHost;
  readonly scope: SetupScope;
  readonly file: string;
  /** A project's file that git tracks: whoever has the repository gets it. */
  readonly isTracked?: boolean;
}

/** An entry of such a file. */
export interface FoundEntry {
  readonly name: string;
  /** The folder in which its host uses it, where that is a single one. */
  readonly folder?: string | undefined;
  readonly keys: readonly string[];
  readonly entry: unknown;
}

/** A file that was read, with the entries in it. */
export interface OpenedFile {
  readonly target: WrapTarget;
  readonly before: ConfigFile;
  readonly format: TextFormat;
  readonly entries: readonly FoundEntry[];
}

/** Reads a file and finds its entries. Throws a sentence when it cannot be understood. */
export function openFile(target: WrapTarget): OpenedFile {
  const { host, scope, file } = target;
  const format = formats[host.format];
  const before = readConfigFile(file);
  const config = refuseByName(target, () => format.read(before.text));
  const folders = scope === "user" ? (host.folderPlaces?.(config) ?? []) : [];
  const places: { keys: readonly string[]; folder?: string }[] = [{ keys: host.place(config) }, ...folders];
  const entries = places.flatMap(({ keys, folder }) => {
    const servers = at(config, keys);
    return Object.entries(isObject(servers) ? servers : {}).map(([name, entry]) => ({
      name,
      folder,
      keys: [...keys, name],
      entry,
    }));
  });
  return { target, before, format, entries };
}

/** What would become of the entries of a file. */
export interface WrapChange {
  readonly kind: "wrapped" | "unwrapped";
  readonly target: WrapTarget;
  readonly before: ConfigFile;
  /** The whole file afterwards. */
  readonly bytes: Buffer | undefined;
  readonly done: readonly ChangedEntry[];
  /** Entries that stay as they are, and why. */
  readonly left: readonly { readonly name: string; readonly why: string; readonly isFailure: boolean }[];
}

interface ChangedEntry {
  readonly name: string;
  readonly folder?: string | undefined;
  readonly keys: readonly string[];
  /** What takes it back. */
  readonly deed?: WrapDeed | undefined;
  /** What its user has to know of it. */
  readonly note?: string | undefined;
  /** It was wrapped before, and starts another way now. */
  readonly isRepaired?: boolean | undefined;
}

/** One entry changed in a text, and what it is then; or why it stays as it is. */
export type EntryEdit =
  | {
      readonly text: string;
      readonly entry: Entry;
      readonly deed?: WrapDeed | undefined;
      readonly note?: string | undefined;
      readonly isRepaired?: boolean;
    }
  | { readonly why: string };

/** Goes through the entries one by one; one that cannot be changed keeps no other from it. */
export function changeEntries(
  opened: OpenedFile,
  kind: WrapChange["kind"],
  { chosen, edit }: { chosen: readonly FoundEntry[]; edit(text: string, found: FoundEntry): EntryEdit },
): WrapChange {
  const { target, before, format } = opened;
  const done: ChangedEntry[] = [];
  const left: WrapChange["left"][number][] = [];
  let text = before.text;
  for (const found of chosen) {
    const { name, folder, keys } = found;
    try {
      const edited = edit(text, found);
      if ("why" in edited) {
        left.push({ name, why: edited.why, isFailure: false });
        continue;
      }
      checkRest(format, text, { keys, edited });
      text = edited.text;
      const { deed, note, isRepaired } = edited;
      done.push({ name, folder, keys, deed, note, isRepaired });
    } catch (error) {
      if (!(error instanceof CommandError)) throw error;
      left.push({ name, why: messageOf(error), isFailure: true });
    }
  }
  return { kind, target, before, bytes: done.length === 0 ? before.bytes : toBytes(before, text), done, left };
}

/** The last guard before anything is written: nothing but this entry is different, and it is what it should be. */
function checkRest(
  format: TextFormat,
  text: string,
  { keys, edited }: { keys: readonly string[]; edited: { text: string; entry: Entry } },
): void {
  const wanted = withEntry(format.read(text), keys, edited.entry);
  if (!isDeepStrictEqual(format.read(edited.text), wanted))
    throw new CommandError("other settings would have changed, which is a bug of ours; please report it");
}

/** A copy of a config with this entry in it. */
export function withEntry(config: unknown, [key = "", ...rest]: readonly string[], entry: Entry): unknown {
  const outer = isObject(config) ? config : {};
  return { ...outer, [key]: rest.length === 0 ? entry : withEntry(outer[key], rest, entry) };
}

/** Writes one entry, in as few places as it takes. */
export function writeEntry(
  format: TextFormat,
  text: string,
  { keys, entry, steps }: { keys: readonly string[] } & EntryPlan,
): string {
  if (steps.length === 0) return format.set(text, keys, entry);
  return steps.reduce((left, { keys: inner, value }) => format.set(left, [...keys, ...inner], value), text);
}

/** Does it, after keeping a copy. Gives where the copy is. */
export function applyWrap(
  { kind, target, before, bytes, done }: WrapChange,
  records: { readonly setup: SetupRecord; readonly wrap: WrapRecord },
): { readonly backup: string | undefined } {
  if (done.length === 0 || before.bytes === undefined) return { backup: undefined };
  records.setup.prepare();
  const backup = records.setup.backUp(before.file, before.bytes);
  // Before the file: what was kept in vain is not found there again, what was not kept could not be taken back.
  if (kind === "wrapped") records.wrap.keep(done.flatMap(({ deed }) => deed ?? []));
  replaceFile({ file: before.file, expected: before.bytes, bytes, mode: target.scope === "user" ? 0o600 : 0o644 });
  if (kind === "unwrapped") records.wrap.forget(done.map(({ keys }) => ({ file: before.file, keys })));
  return { backup };
}
