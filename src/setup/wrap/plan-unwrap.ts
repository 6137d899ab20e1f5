import { isDeepStrictEqual } from "node:util";
import { thisProgram } from "../../program/program.ts";
import type { Entry, Launch } from "../host.ts";
import { isEarlierStart, wrapWordsOf } from "../ownership.ts";
import type { TextFormat } from "../text-format.ts";
import { undoHunk } from "./hunk.ts";
import {
  changeEntries,
  type EntryEdit,
  type FoundEntry,
  type OpenedFile,
  type WrapChange,
  withEntry,
} from "./wrap-file.ts";
import type { WrapDeed, WrapRecord } from "./wrap-record.ts";
import { rebuild, takeBack } from "./wrapped-entry.ts";

/**
 * What bringing these entries back would change. `own` are the home and the store of this setup, by their variables:
 * earlier versions wrote them into the entry.
 */
export function planUnwrap(
  opened: OpenedFile,
  chosen: readonly FoundEntry[],
  { record, own = {} }: { readonly record: WrapRecord; readonly own?: Launch["env"] },
): WrapChange {
  const edit = (text: string, found: FoundEntry): EntryEdit => {
    if (wrapWordsOf(found.entry) === undefined) return { why: `it is not behind ${thisProgram.title}` };
    return unwrapEntry(opened, text, { found, deed: record.find(opened.before.file, found.keys), own });
  };
  return changeEntries(opened, "unwrapped", { chosen, edit });
}

/** Its own lines where they are known and ours still stand; else what the entry itself says of what is behind us. */
export function unwrapEntry(
  { target: { host }, format }: OpenedFile,
  text: string,
  { found, deed, own }: { found: FoundEntry; deed: WrapDeed | undefined; own: Launch["env"] },
): EntryEdit {
  const { keys } = found;
  const now = found.entry as Entry;
  // A launcher knows its home, so that a home in the entry of one is its user's.
  const earlier = isEarlierStart(now) ? own : {};
  const entry = deed === undefined ? rebuild(now, host, earlier) : takeBack(deed, now, host);
  if (entry === undefined) return { why: `it does not say what is behind ${thisProgram.title}; change it by hand` };
  const config = withEntry(format.read(text), keys, entry);
  const span = format.spanOf(text, keys);
  const candidates = deed === undefined ? [] : undoHunk(text.slice(span.from, span.to), deed.lines);
  for (const inner of candidates) {
    const restored = text.slice(0, span.from) + inner + text.slice(span.to);
    if (means(() => format.read(restored), config)) return { text: restored, entry };
  }
  const note = deed === undefined ? "made out of what it ran; how it was written before is not known here" : undefined;
  return { text: writeBack(format, text, { keys, now, entry }), entry, note };
}

function means(read: () => unknown, wanted: unknown): boolean {
  try {
    return isDeepStrictEqual(read(), wanted);
  } catch {
    // Lines like ours stand somewhere else too.
    return false;
  }
}

/** Value by value where that is enough; what else is written in the entry stays as it is then. */
export function writeBack(
  format: TextFormat,
  text: string,
  { keys, now, entry }: { keys: readonly string[]; now: Entry; entry: Entry },
): string {
  if (Object.keys(entry).some((key) => !Object.hasOwn(now, key))) return format.set(text, keys, entry);
  const changed = Object.keys(now).filter((key) => !isDeepStrictEqual(now[key], entry[key]));
  return changed.reduce(
    (left, key) =>
      Object.hasOwn(entry, key) ? format.set(left, [...keys, key], entry[key]) : format.remove(left, [...keys, key]),
    text,
  );
}
