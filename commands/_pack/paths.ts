import { readlinkSync, realpathSync, statSync } from "node:fs";
import { homedir } from "node:os";
import path from "node:path";
import { CommandError } from "meanwhile";
import { reasonOf } from "./reason.ts";

/**
 * Paths of the pack. A file's name is bytes, not text: it is kept as a Buffer, and shown as text in which everything
 * that is not UTF-8, and every control character, is percent-escaped. What is shown can be given again.
 */

/** A path somebody gave: real, and in reach. */
export interface GivenPath {
  /** Links resolved, as far as the path exists. */
  readonly path: Buffer;
  readonly shown: string;
  readonly kind: "file" | "folder" | "other" | "missing";
}

const separator = Buffer.from("/");

/** What the system says where an open file lies; undefined where it does not say. */
export function pathOfOpened(descriptor: number): Buffer | undefined {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`, "buffer");
  } catch {
    return undefined; // Only Linux has it.
  }
}

/** True for the folder itself and everything below it. */
export function isInside(file: Buffer, folder: Buffer): boolean {
  if (file.equals(folder)) return true;
  const below = folder.at(-1) === separator[0] ? folder : Buffer.concat([folder, separator]);
  return file.length > below.length && file.subarray(0, below.length).equals(below);
}

/** A path as text, with what is not UTF-8 and every control character percent-escaped; `readName` turns it back. */
export function showName(name: Buffer): string {
  const text = name.toString("utf8");
  if (!needsEscape(text)) return text;
  let shown = "";
  for (let at = 0; at < name.length; ) {
    const length = characterLength(name, at);
    const character = name.toString("utf8", at, at + length);
    shown += length === 0 || isEscaped(character, name, at) ? escapeByte(name[at] ?? 0) : character;
    at += isEscaped(character, name, at) ? 1 : Math.max(1, length);
  }
  return shown;
}

/** The bytes of a name that `showName` made. */
export function readName(shown: string): Buffer {
  const parts = shown.split(/(%[0-9A-Fa-f]{2})/);
  return Buffer.concat(parts.map((part, at) => (at % 2 === 1 ? Buffer.from(part.slice(1), "hex") : Buffer.from(part))));
}

/** A name below a folder. */
export function joinBytes(folder: Buffer, name: Buffer): Buffer {
  return folder.at(-1) === separator[0] ? Buffer.concat([folder, name]) : Buffer.concat([folder, separator, name]);
}

/** The folder of a path. */
export function folderOf(file: Buffer): Buffer {
  const at = file.lastIndexOf(separator);
  return at <= 0 ? separator : file.subarray(0, at);
}

/** The last part of a path. */
export function nameOf(file: Buffer): Buffer {
  return file.subarray(file.lastIndexOf(separator) + 1);
}

/** Links resolved; of a path that does not exist, those of the part that does. */
export function realPathOf(file: Buffer): Buffer {
  try {
    return realpathSync.native(file, "buffer");
  } catch (error) {
    const folder = folderOf(file);
    if (folder.equals(file) || !["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? ""))
      return file;
    // A link that leads to nothing is where it leads: a file made there would not be here.
    const target = targetOf(file);
    if (target !== undefined) return realPathOf(target[0] === separator[0] ? target : joinBytes(folder, target));
    return joinBytes(realPathOf(folder), nameOf(file));
  }
}

function targetOf(file: Buffer): Buffer | undefined {
  try {
    return readlinkSync(file, "buffer");
  } catch {
    return undefined; // Not a link, or not there at all.
  }
}

/** A leading `~` is the user's home. */
export function expandHome(text: string): string {
  return text === "~" || text.startsWith("~/") ? path.join(homedir(), text.slice(1)) : text;
}

/** What is there; refuses what cannot be looked at. */
export function kindOf(file: Buffer): GivenPath["kind"] {
  try {
    const stat = statSync(file, { throwIfNoEntry: false });
    if (stat === undefined) return "missing";
    return stat.isFile() ? "file" : stat.isDirectory() ? "folder" : "other";
  } catch (error) {
    throw new CommandError(`${showName(file)} cannot be looked at: ${reasonOf(error)}.`, { cause: error });
  }
}

/**
 * U+FFFD stands for bytes that are no UTF-8 (or for itself); a percent sign before two hex digits would look like an
 * escape.
 */
function needsEscape(text: string): boolean {
  return /[\u0000-\u001f\u007f-\u009f\u2028\u2029\ufffd]|%[0-9A-Fa-f]{2}/.test(text);
}

function isEscaped(character: string, name: Buffer, at: number): boolean {
  if (character === "%") return /^%[0-9A-Fa-f]{2}/.test(name.toString("latin1", at, at + 3));
  return /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/.test(character);
}

/** How many bytes the UTF-8 character at this place has; 0 when there is none. */
function characterLength(name: Buffer, at: number): number {
  const first = name[at] ?? 0;
  const length = first < 0x80 ? 1 : first < 0xc0 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (length === 0 || at + length > name.length) return 0;
  const bytes = name.subarray(at, at + length);
  return Buffer.from(bytes.toString("utf8")).equals(bytes) ? length : 0;
}

function escapeByte(byte: number): string {
  return `%${byte.toString(16).padStart(2, "0").toUpperCase()}`;
}
