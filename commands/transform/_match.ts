import path from "node:path";
import { CommandError } from "meanwhile";
import { compileGlob } from "../_pack/glob.ts";
import { showName } from "../_pack/paths.ts";
import type { Reach } from "../_pack/reach.ts";
import { pathOf, walk } from "../_pack/walk.ts";
import { folderSkipper, isHidden } from "./_skips.ts";

const wildcard = /[*?[{]/;

/** A glob taken apart: the folder to look in, and what to look for there. */
export interface Pattern {
  readonly folder: Buffer;
  readonly rest: string;
}

/** Splits a glob where its wildcards begin; the folder before them must be there and allowed. */
export function readPattern(glob: string, reach: Reach): Pattern {
  const parts = glob.split("/");
  const at = parts.findIndex((part) => wildcard.test(part));
  const fixed = at === -1 ? parts.length - 1 : at;
  const before = parts.slice(0, fixed).join("/");
  const given = reach.resolve(before === "" ? (glob.startsWith("/") ? "/" : ".") : before, "glob");
  if (given.kind !== "folder")
    throw new CommandError(`\`glob\` ${glob} begins with ${given.shown}, which is no folder; check the path.`);
  const rest = parts.slice(fixed).join("/");
  if (rest === "")
    throw new CommandError(`\`glob\` ${glob} names a folder; add a pattern, e.g. ${path.join(glob, "**/*.pdf")}.`);
  return { folder: given.path, rest };
}

export interface MatchOptions {
  /** Meanwhile's own folder, which is passed over. */
  readonly home: string;
  readonly reach: Reach;
  readonly limit: number;
  readonly signal: AbortSignal;
  readonly onError: (path: string, error: unknown) => void;
  /** Told how often something was passed over because it is closed. */
  readonly onHidden: () => void;
}

/** The files that a glob means, as shown, in order. Names that begin with a dot only when the glob says so. */
export async function matchFiles(
  { folder, rest }: Pattern,
  { home, reach, limit, signal, onError, onHidden }: MatchOptions,
): Promise<string[]> {
  const matches = compileGlob(rest);
  const wantsHidden = /(?:^|\/)\./.test(rest);
  const skipsFolder = folderSkipper(home);
  const found: string[] = [];
  const length = folder.length + (folder.at(-1) === 0x2f ? 0 : 1);
  const files = walk(folder, {
    recursive: rest.includes("/") || rest.includes("**"),
    reach,
    onHidden,
    signal,
    skipsFolder: (parent, name) => (wantsHidden && isHidden(name) ? false : skipsFolder(parent, name)),
    skipsFile: (_parent, name) => !wantsHidden && isHidden(name),
    onError: (file, error) => onError(showName(file), error),
  });
  for await (const file of files) {
    const whole = pathOf(file);
    if (!matches(showName(whole.subarray(length)))) continue;
    if (found.length === limit)
      throw new CommandError(`\`glob\` means more than ${limit} files; narrow it, or raise \`limit\`.`);
    found.push(showName(whole));
  }
  return found.sort();
}
