import { randomBytes } from "node:crypto";
import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import path from "node:path";
import { CommandError } from "meanwhile";

/** The user's config file as it is now. */
export interface UserFile {
  readonly file: string;
  /** Undefined when there is none. */
  readonly text: string | undefined;
  readonly config: Readonly<Record<string, unknown>>;
}

export function readUserFile(home: string): UserFile {
  const named = path.join(home, "config.json");
  // Where it is a link, say into a folder under version control, what it leads to is written.
  const file = existsSync(named) ? realpathSync(named) : named;
  const text = readText(file);
  if (text === undefined) return { file, text, config: {} };
  let config: unknown;
  try {
    config = JSON.parse(text);
  } catch (cause) {
    throw new CommandError(`${file} is not JSON (${(cause as Error).message}); correct it by hand first.`, { cause });
  }
  if (!isObject(config)) throw new CommandError(`${file} does not hold one object; correct it by hand first.`);
  return { file, text, config };
}

/**
 * Replaces the file in one go, unless somebody else has changed it since it was read: then false, and nothing is done.
 */
export function replaceUserFile({ file, text }: UserFile, config: object): boolean {
  const mode = text === undefined ? 0o600 : statSync(file).mode & 0o777;
  const next = `${file}.${randomBytes(6).toString("hex")}.tmp`;
  mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
  try {
    writeDurably(next, `${JSON.stringify(config, null, 2)}\n`, mode);
    if (readText(file) !== text) return false;
    renameSync(next, file);
    return true;
  } catch (cause) {
    throw new CommandError(`${file} could not be written (${(cause as Error).message}); nothing was changed.`, {
      cause,
    });
  } finally {
    rmSync(next, { force: true });
  }
}

/** The config with one value at a dotted path set, or taken away when it is null. */
export function withValue(
  config: Readonly<Record<string, unknown>>,
  keys: readonly string[],
  value: unknown,
): Record<string, unknown> {
  const [key = "", ...rest] = keys;
  const { [key]: before, ...others } = config;
  if (rest.length > 0) {
    const inner = withValue(Object.hasOwn(config, key) && isObject(before) ? before : {}, rest, value);
    // An object that became empty by taking its last value away says nothing.
    return value === null && Object.keys(inner).length === 0 ? others : { ...config, [key]: inner };
  }
  return value === null ? others : { ...config, [key]: value };
}

/** What stands at a dotted path; undefined when nothing does. */
export function valueAt(config: unknown, keys: readonly string[]): unknown {
  return keys.reduce<unknown>((at, key) => (isObject(at) && Object.hasOwn(at, key) ? at[key] : undefined), config);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function readText(file: string): string | undefined {
  return existsSync(file) ? readFileSync(file, "utf8") : undefined;
}

function writeDurably(file: string, text: string, mode: number): void {
  // A new file, whatever somebody may have laid in its place.
  const descriptor = openSync(file, "wx", mode);
  try {
    writeSync(descriptor, text);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
