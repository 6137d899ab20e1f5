import { statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { CommandError, Exit, type ExitCode, messageOf, UsageError } from "../../errors.ts";
import { fieldsOf } from "../../wire/json.ts";
import { clean, type Terminal } from "../terminal.ts";

/** Files of one result that are written. A server decides how many its result has. */
const maxFiles = 100;
/** The highest number in a name that is tried. */
const maxNumber = 1000;

/** An image, a sound or a file of a result. */
interface ResultFile {
  readonly bytes: Buffer;
  readonly mimeType: string | undefined;
}

/** Where `--out` writes. */
export interface OutFile {
  /** An absolute path. */
  readonly file: string;
  /** Prints no line for a file that was written. */
  readonly isQuiet: boolean;
}

/** The file of `--out`. Throws a UsageError where nothing could be written, so that nothing is called in vain. */
export function readOut(typed: unknown, { folder }: Pick<Terminal, "folder">, isQuiet = false): OutFile | undefined {
  if (typeof typed !== "string") return undefined;
  if (typed === "") throw new UsageError("--out is empty; give the file to write.");
  const file = path.resolve(folder, typed);
  if (isFolder(file)) throw new UsageError(`--out ${clean(typed)} is a folder; give a file in it.`);
  if (!isFolder(path.dirname(file)))
    throw new UsageError(`--out ${clean(typed)}: there is no folder ${clean(path.dirname(file))}; create it first.`);
  return { file, isQuiet };
}

/** False also for a path that this user may not look at. */
function isFolder(file: string): boolean {
  try {
    return statSync(file).isDirectory();
  } catch {
    return false;
  }
}

/** The content without the blocks that `--out` writes; all of it without `out`. Links are not written. */
export function withoutFiles<Block>(content: readonly Block[], out: OutFile | undefined): readonly Block[] {
  return out === undefined ? content : content.filter((block) => toFile(block) === undefined);
}

/**
 * Writes images, sounds and files of a result: the first to the file of `--out`, which it replaces, the others beside it
 * with a number in the name that no file has. Returns 1 when the result has none, or more than `maxFiles`.
 */
export function writeResultFiles(content: unknown, out: OutFile, terminal: Terminal): ExitCode {
  const { colors } = terminal;
  const found = (Array.isArray(content) ? (content as unknown[]) : []).flatMap((block) => toFile(block) ?? []);
  if (found.length === 0) {
    terminal.say(`${colors.red("✗")} The result has no image or file, so ${clean(out.file)} was not written.\n`);
    return Exit.CommandFailed;
  }
  let number = 1;
  for (const [at, { bytes, mimeType }] of found.slice(0, maxFiles).entries()) {
    if (at > 0) number = writeNumbered(out.file, number + 1, bytes);
    else writeTo(out.file, bytes, "w");
    const file = at > 0 ? numbered(out.file, number) : out.file;
    const kind = mimeType === undefined ? "" : `${mimeType}, `;
    if (!out.isQuiet) terminal.say(`${colors.green("✓")} Wrote ${clean(file)} (${clean(kind)}${bytes.length} bytes)\n`);
  }
  if (found.length <= maxFiles) return Exit.Ok;
  terminal.say(
    `${colors.red("✗")} The result has ${found.length} images and files; --out wrote the first ${maxFiles} of them.\n`,
  );
  return Exit.CommandFailed;
}

/** Returns false for a file that exists, when `flag` is `wx`. */
function writeTo(file: string, bytes: Buffer, flag: "w" | "wx"): boolean {
  try {
    writeFileSync(file, bytes, { flag });
    return true;
  } catch (cause) {
    if (flag === "wx" && fieldsOf(cause).code === "EEXIST") return false;
    throw new CommandError(`${file} could not be written: ${messageOf(cause)}`, { cause });
  }
}

/** Writes to the first file from `number` on that does not exist, and returns its number. */
function writeNumbered(file: string, from: number, bytes: Buffer): number {
  for (let number = from; number <= maxNumber; number += 1)
    if (writeTo(numbered(file, number), bytes, "wx")) return number;
  throw new CommandError(
    `The files ${numbered(file, from)} to ${numbered(file, maxNumber)} exist already. Remove some, or give --out another name.`,
  );
}

/** `chart.png`, 2 → `chart-2.png` */
function numbered(file: string, number: number): string {
  const { dir, name, ext } = path.parse(file);
  return path.join(dir, `${name}-${number}${ext}`);
}

/** Undefined for text, links and whatever has no bytes. */
function toFile(block: unknown): ResultFile | undefined {
  const { type, data, mimeType, resource } = fieldsOf(block);
  if (type === "image" || type === "audio") return toBytes(data, "base64", mimeType);
  if (type !== "resource") return undefined;
  const { blob, text, mimeType: kind } = fieldsOf(resource);
  return toBytes(blob, "base64", kind) ?? toBytes(text, "utf8", kind);
}

function toBytes(text: unknown, encoding: "base64" | "utf8", mimeType: unknown): ResultFile | undefined {
  if (typeof text !== "string") return undefined;
  return { bytes: Buffer.from(text, encoding), mimeType: typeof mimeType === "string" ? mimeType : undefined };
}
