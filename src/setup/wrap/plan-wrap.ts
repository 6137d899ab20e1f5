import { CommandError } from "../../errors.ts";
import { thisProgram } from "../../program/program.ts";
import type { Entry, Launch } from "../host.ts";
import { type EntryServer, readServer } from "./entry-server.ts";
import { isOpenUrl } from "./entry-words.ts";
import { toHunk, undoHunk } from "./hunk.ts";
import { needsRepair, type RepairMeans, repairEntry } from "./repair-entry.ts";
import {
  changeEntries,
  type EntryEdit,
  type FoundEntry,
  type OpenedFile,
  type WrapChange,
  writeEntry,
} from "./wrap-file.ts";
import { toWrapped } from "./wrapped-entry.ts";

/** What it takes to put entries behind us. */
export interface WrapMeans {
  /** What a host runs, for the words behind `wrap`. */
  toLaunch(words: readonly string[]): Launch;
  isThere(file: string): boolean;
  /** Has the launcher start entries that are wrapped already; undefined for a project's file, which names none. */
  readonly repair?: RepairMeans | undefined;
}

/** What putting these entries behind us would change. */
export function planWrap(opened: OpenedFile, chosen: readonly FoundEntry[], means: WrapMeans): WrapChange {
  const edit = (text: string, found: FoundEntry): EntryEdit => {
    const server = readServer(found.entry, means.isThere);
    const { repair } = means;
    // An entry of our own server is repaired by plain `setup`: --unwrap would not bring it back.
    const isRepairable = server.kind === "none" && server.isWrapped === true && repair !== undefined;
    if (isRepairable && needsRepair(found.entry, repair.facts)) return repairEntry(opened, text, found, repair);
    return server.kind === "none" ? { why: server.why } : wrapEntry(opened, text, { found, server, means });
  };
  return changeEntries(opened, "wrapped", { chosen, edit });
}

function wrapEntry(
  { target: { host }, before: { file }, format }: OpenedFile,
  text: string,
  given: { found: FoundEntry; server: Exclude<EntryServer, { kind: "none" }>; means: WrapMeans },
): EntryEdit {
  const { found, server, means } = given;
  const { name, keys } = found;
  const before = found.entry as Entry;
  const plan = toWrapped(before, { host, name, server, toLaunch: means.toLaunch });
  const changed = writeEntry(format, text, { keys, ...plan });
  const [was, is] = [format.spanOf(text, keys), format.spanOf(changed, keys)];
  const lines = toHunk(text.slice(was.from, was.to), changed.slice(is.from, is.to));
  // It has to be known now that there is a way back.
  const wayBack = [...undoHunk(changed.slice(is.from, is.to), lines)];
  if (!wayBack.some((inner) => changed.slice(0, is.from) + inner + changed.slice(is.to) === text))
    throw new CommandError("it could not be brought back byte for byte, which is a bug of ours; please report it");
  const note = noteOn(server);
  return { text: changed, entry: plan.entry, deed: { file, keys, lines, before, after: plan.entry }, note };
}

function noteOn(server: Exclude<EntryServer, { kind: "none" }>): string | undefined {
  if (server.kind === "command") return undefined;
  const isSaid = Object.keys({ ...server.headers, ...server.references }).length > 0;
  return isSaid || !isOpenUrl(server.url)
    ? undefined
    : `if it wants you to sign in, ${thisProgram.title} asks you now, and no longer the host`;
}
