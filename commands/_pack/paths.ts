import { readlinkSync, realpathSync, statSync } from "node:fs";
import { homedir } from "node:os";
import path from "node:path";
import { CommandError } from "meanwhile";
import { reasonOf } from "./reason.ts";

/**
 * Paths of the pack. A file's name is bytes, not text: it is kept as a Buffer, and shown as text in which everything that is
 * not UTF-8, and every control character, is percent-escaped. What is shown can be given again.
 */

/** A path somebody gave: real, inside an allowed root. */
export interface GivenPath {
  /** Links resolved, as far as the path exists. */
  readonly path: Buffer;
  readonly shown: string;
  readonly kind: "file" | "folder" | "other" | "missing";
}

const separator = Buffer.from("/");

/** The folders that commands of the pack may look into: `MEANWHILE_PACK_ROOTS`, or the user's home and the working folder. */
export function allowedRoots(): Buffer[] {
  const given = (process.env.MEANWHILE_PACK_ROOTS ?? "").split(path.delimiter).filter((root) => root !== "");
  // Programs with a window start their servers in `/`: that is no choice of anybody's.
  const working = isNowhere() ? [] : [process.cwd()];
  const roots = given.length > 0 ? given.map((root) => path.resolve(expandHome(root))) : [homedir(), ...working];
  return roots.map((root) => realPathOf(Buffer.from(root)));
}

/** Resolves a path that was given as text, and refuses one that lies outside the allowed roots, links and all. */
export function resolveGiven(text: string, field = "path"): GivenPath {
  if (text === "") throw new CommandError(`\`${field}\` is empty; give a file or a folder.`);
  if (text.includes("\0")) throw new CommandError(`\`${field}\` holds a NUL character, which no file name can.`);
  // One daemon serves sessions of every folder: whose folder would it be?
  if (!isWhole(text) && isNowhere()) {
    throw new CommandError(`\`${field}\` ${text} is relative, and this server works in no folder of yours; give the whole path, or one that begins with ~/.`);
  }
  const real = realPathOfGiven(text);
  const roots = allowedRoots();
  if (!roots.some((root) => isInside(real, root))) {
    const allowed = roots.map(showName).join(", ");
    throw new CommandError(`\`${field}\` ${showName(real)} lies outside the allowed folders (${allowed}); set MEANWHILE_PACK_ROOTS to allow others.`);
  }
  return { path: real, shown: showName(real), kind: kindOf(real) };
}

/**
 * Refuses a file that was opened and lies outside the allowed folders. Its path was looked at before, but a folder on the way
 * may have become a link since then; what is open stays what it is.
 */
export function checkOpened(descriptor: number, file: Buffer): void {
  const real = pathOfOpened(descriptor) ?? realPathOf(file);
  const from = `${process.env.MEANWHILE_PACK_ROOTS}\0${process.cwd()}`;
  if (known.from === from && known.roots.some((root) => isInside(real, root))) return;
  known = { from, roots: allowedRoots() };
  if (!known.roots.some((root) => isInside(real, root))) throw new CommandError("it lies outside the allowed folders, behind a link");
}

/** As they were when last looked at: asking anew for every file would take longer than reading it. */
let known: { readonly from: string; readonly roots: readonly Buffer[] } = { from: "", roots: [] };

/** What the system says where an open file lies; undefined where it does not say. */
function pathOfOpened(descriptor: number): Buffer | undefined {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`, "buffer");
  } catch {
    return undefined; // Only Linux has it.
  }
}

/** Where a path leads that was given as text, wherever that is. */
export function realPathOfGiven(text: string): Buffer {
  return realPathOf(toBytes(path.resolve(expandHome(text))));
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
    if (folder.equals(file) || !["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? "")) return file;
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

function isNowhere(): boolean {
  return process.cwd() === path.parse(process.cwd()).root;
}

function isWhole(text: string): boolean {
  return path.isAbsolute(expandHome(text));
}

function expandHome(text: string): string {
  return text === "~" || text.startsWith("~/") ? path.join(homedir(), text.slice(1)) : text;
}

/** What is there under these very characters, else what they stand for when they are escapes. */
function toBytes(text: string): Buffer {
  const literal = Buffer.from(text);
  const read = readName(text);
  return read.equals(literal) || kindOf(literal) !== "missing" ? literal : read;
}

function kindOf(file: Buffer): GivenPath["kind"] {
  try {
    const stat = statSync(file, { throwIfNoEntry: false });
    if (stat === undefined) return "missing";
    return stat.isFile() ? "file" : stat.isDirectory() ? "folder" : "other";
  } catch (error) {
    throw new CommandError(`${showName(file)} cannot be looked at: ${reasonOf(error)}.`, { cause: error });
  }
}

/** U+FFFD stands for bytes that are no UTF-8 (or for itself); a percent sign before two hex digits would look like an escape. */
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
