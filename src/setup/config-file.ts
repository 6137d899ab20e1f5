import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { CommandError, messageOf } from "../errors.ts";
import { thisProgram } from "../program/program.ts";

/** A host's file as it is on the disk. */
export interface ConfigFile {
  /** Where links lead: the link itself is kept. */
  readonly file: string;
  /** Nothing when there is no such file. */
  readonly bytes: Buffer | undefined;
  readonly text: string;
  /** What some editors on Windows put in front. */
  readonly mark: string;
}

const byteOrderMark = "\uFEFF";
/** More than any host's settings, and little enough to be read at once. */
const maxBytes = 32 * 1024 * 1024;

/** Reads a config file. Throws a sentence when it cannot be one. */
export function readConfigFile(named: string): ConfigFile {
  const { file, bytes } = readBytes(named);
  const text = bytes === undefined ? "" : decode(bytes, named);
  const mark = text.startsWith(byteOrderMark) ? byteOrderMark : "";
  return { file, bytes, text: text.slice(mark.length), mark };
}

function readBytes(named: string): { file: string; bytes: Buffer | undefined } {
  try {
    const isLink = lstatSync(named, { throwIfNoEntry: false })?.isSymbolicLink() === true;
    if (isLink && !existsSync(named))
      throw new CommandError(
        `${named} is a link that leads nowhere; make the file it should lead to, or remove the link.`,
      );
    const file = isLink ? realpathSync(named) : named;
    const facts = statSync(file, { throwIfNoEntry: false });
    if (facts === undefined) return { file, bytes: undefined };
    if (!facts.isFile()) throw new CommandError(`${named} is not a file.`);
    if (facts.size > maxBytes)
      throw new CommandError(`${named} is larger than ${maxBytes / 1024 / 1024} MB, so it was left alone.`);
    return { file, bytes: readFileSync(file) };
  } catch (cause) {
    if (cause instanceof CommandError) throw cause;
    throw new CommandError(`${named} cannot be read: ${messageOf(cause)}.`, { cause });
  }
}

function decode(bytes: Buffer, named: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    throw new CommandError(`${named} is not UTF-8 text, so it was left alone.`, { cause });
  }
}

export interface Replacement {
  readonly file: string;
  /** What must still be there; nothing for a file that must not be there yet. */
  readonly expected: Buffer | undefined;
  /** Nothing removes the file. */
  readonly bytes: Buffer | undefined;
  /** The mode of a new file. */
  readonly mode: number;
}

/**
 * Replaces a file in one step, so that its host sees the old or the new one. Gives the folders it had to make,
 * outermost first.
 */
export function replaceFile({ file, expected, bytes, mode }: Replacement): string[] {
  checkWritable(file, expected);
  try {
    if (bytes === undefined) {
      checkSame(file, expected);
      rmSync(file);
      return [];
    }
    const made = makeFolders(path.dirname(file));
    const workplace = mkdtempSync(path.join(path.dirname(file), `.${thisProgram.name}-`));
    try {
      const fresh = path.join(workplace, path.basename(file));
      writeFileSync(fresh, bytes, { mode, flush: true });
      chmodSync(fresh, expected === undefined ? mode : statSync(file).mode & 0o7777);
      checkSame(file, expected);
      renameSync(fresh, file);
    } finally {
      rmSync(workplace, { recursive: true, force: true });
    }
    return made;
  } catch (cause) {
    if (cause instanceof CommandError) throw cause;
    throw new CommandError(`${file} cannot be written: ${messageOf(cause)}.`, { cause });
  }
}

/** A rename would replace a file that its owner made read-only. */
function checkWritable(file: string, expected: Buffer | undefined): void {
  if (expected === undefined) return;
  const hasWriteBit = ((statSync(file, { throwIfNoEntry: false })?.mode ?? 0o200) & 0o222) !== 0;
  if (!hasWriteBit || !canWrite(file))
    throw new CommandError(`${file} is read-only, so it was left alone; make it writable and run this again.`);
}

function canWrite(file: string): boolean {
  try {
    accessSync(file, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** Its host, or another setup, may have written in the meantime. */
function checkSame(file: string, expected: Buffer | undefined): void {
  const now = existsSync(file) ? readFileSync(file) : undefined;
  const isSame = now === undefined || expected === undefined ? now === expected : now.equals(expected);
  if (!isSame)
    throw new CommandError(`${file} was changed by somebody else just now, so it was left alone; run this again.`);
}

function makeFolders(folder: string): string[] {
  const missing: string[] = [];
  for (let at = folder; !existsSync(at); at = path.dirname(at)) missing.unshift(at);
  mkdirSync(folder, { recursive: true });
  return missing;
}

/** Removes those of the folders that are empty, innermost first. */
export function removeEmptyFolders(folders: readonly string[]): void {
  for (const folder of folders.toReversed()) {
    try {
      rmdirSync(folder);
    } catch {
      // Somebody has put something into it, or has removed it.
      return;
    }
  }
}
