import { fstatSync, lstatSync } from "node:fs";
import path from "node:path";
import { type CallFacts, type CommandContext, CommandError, type Origin } from "meanwhile";
import { expandHome, type GivenPath, isInside, kindOf, pathOfOpened, readName, realPathOf, showName } from "./paths.ts";
import { personsFolders } from "./persons.ts";
import { isSecretName } from "./secret-names.ts";

/**
 * Which files a run may touch. What a person types in a terminal reaches whatever that person may read. What comes
 * through MCP was most likely thought up by a model, which may have been talked into it by what it has read: it reaches
 * the session's working folder, the setting `pack.roots`, and the folders that the person has put under `monitor` or
 * `vault`. Below these, names that begin with a dot, keys, tokens, files with a second name elsewhere, what belongs to
 * the system, and Meanwhile's own folder stay closed, unless a root names the very thing.
 */
export interface Root {
  readonly path: Buffer;
  /** False: only what lies right in it. */
  readonly isDeep: boolean;
  /** Somebody wrote it down in `pack.roots`. */
  readonly isNamed: boolean;
}

/** What is about to be looked at: a folder, or a file that has so many names. */
export type Looked = "folder" | { readonly names: number };

interface Limits {
  readonly roots: readonly Root[];
  /** Meanwhile's own folder. */
  readonly home: Buffer;
}

export class Reach {
  readonly #folder: string | undefined;
  readonly #limits: Limits | undefined;

  /** Without limits, everything is in reach. */
  constructor(folder: string | undefined, limits: Limits | undefined) {
    this.#folder = folder;
    this.#limits = limits;
  }

  /** True where nothing is closed. */
  get isFree(): boolean {
    return this.#limits === undefined;
  }

  /**
   * Resolves a path that was given as text, from the caller's own folder, and refuses one that is out of reach, links
   * and all.
   */
  resolve(text: string, field = "path"): GivenPath {
    const meant = this.#locate(text, field);
    const real = realPathOf(meant);
    const why = this.#whyClosed(real);
    if (why !== undefined) throw new CommandError(`\`${field}\` ${showName(meant)} ${why}; ${cure}.`);
    return { path: real, shown: showName(real), kind: kindOf(real) };
  }

  /** Where a path leads that was given as text, wherever that is: for looking up what is recorded, not for reading. */
  locate(text: string, field = "path"): Buffer {
    return realPathOf(this.#locate(text, field));
  }

  /** True for what a walk passes over: it is there, and closed. */
  hides(file: Buffer, looked: Looked): boolean {
    return this.#limits !== undefined && whyClosed(file, this.#limits, looked) !== undefined;
  }

  /**
   * Refuses a file that was opened and is out of reach. Its path was looked at before, but a folder on the way may have
   * become a link since then; what is open stays what it is.
   */
  checkOpened(descriptor: number, file: Buffer): void {
    if (this.#limits === undefined) return;
    const { nlink } = fstatSync(descriptor);
    if (nlink === 0) throw new CommandError("it vanished while it was looked at");
    const why = whyClosed(pathOfOpened(descriptor) ?? realPathOf(file), this.#limits, { names: nlink });
    if (why !== undefined) throw new CommandError(`it ${why}; ${cure}`);
  }

  #locate(text: string, field: string): Buffer {
    if (text === "") throw new CommandError(`\`${field}\` is empty; give a file or a folder.`);
    if (text.includes("\0")) throw new CommandError(`\`${field}\` holds a NUL character, which no file name can.`);
    const whole = expandHome(text);
    if (!path.isAbsolute(whole) && this.#folder === undefined) {
      throw new CommandError(
        `\`${field}\` ${text} is relative, and this server works in no folder of yours; give the whole path, or one that begins with ~/.`,
      );
    }
    return toBytes(path.resolve(this.#folder ?? "/", whole), field);
  }

  #whyClosed(real: Buffer): string | undefined {
    return this.#limits === undefined ? undefined : whyClosed(real, this.#limits, lookAt(real));
  }
}

const cure = "a person can open it with the setting `pack.roots`, in a terminal or in the config file";

/** What a run may touch, by where it was asked for. */
export function openReach({ origin, home, config, log }: CallFacts & Partial<Pick<CommandContext, "log">>): Reach {
  if (origin.door === "terminal") return new Reach(origin.folder, undefined);
  if ((process.env.MEANWHILE_PACK_ROOTS ?? "") !== "")
    log?.warn("MEANWHILE_PACK_ROOTS is not read any more; write its folders into the setting `pack.roots`.");
  const { roots = [] } = (config.pack ?? {}) as { readonly roots?: readonly string[] };
  const named = roots.map((root) => ({ path: realPathOf(Buffer.from(root)), isDeep: true, isNamed: true }));
  return new Reach(origin.folder, {
    roots: [...sessionRoots(origin), ...named, ...personsFolders(home)],
    home: realPathOf(Buffer.from(home)),
  });
}

/** The folder as the client's process had it, links resolved: when one has taken its place since, that leads out. */
function sessionRoots({ folder }: Origin): Root[] {
  return folder === undefined ? [] : [{ path: Buffer.from(folder), isDeep: true, isNamed: false }];
}

function whyClosed(file: Buffer, { roots, home }: Limits, looked: Looked): string | undefined {
  const reasons = roots
    .filter(({ path: root }) => isInside(file, root))
    .map((root) => whyClosedBelow(root, file, home, looked));
  if (reasons.includes(undefined)) return undefined;
  const open = roots.map(({ path: root }) => showName(root)).join(", ") || "none";
  return reasons[0] ?? `lies outside the folders that are open to MCP clients (${open})`;
}

/** What belongs to the system and only looks like files: the environments of processes, the memory, the disks. */
const systemFolders = ["/proc", "/sys", "/dev"].map((folder) => Buffer.from(folder));

function whyClosedBelow(
  { path: root, isDeep, isNamed }: Root,
  file: Buffer,
  home: Buffer,
  looked: Looked,
): string | undefined {
  if (isInside(file, home) && !(isNamed && isInside(root, home)))
    return "lies in Meanwhile's own folder, which is closed to MCP clients";
  if (systemFolders.some((folder) => isInside(file, folder) && !isInside(root, folder)))
    return "belongs to the system, and is closed to MCP clients";
  const names = file.subarray(root.length).toString("latin1").split("/").filter(Boolean);
  const name = names.at(-1);
  if (name === undefined) return undefined;
  if (!isDeep && names.length > 1)
    return `lies further down than ${showName(root)}, of which only the files right in it are open to MCP clients`;
  if (names.some((part) => part.startsWith(".")))
    return "has a name that begins with a dot, or lies below one, and is closed to MCP clients";
  if (looked === "folder") return undefined;
  if (isSecretName(name)) return "has the name of a key, a token or a password file, and is closed to MCP clients";
  return looked.names > 1 ? "has another name elsewhere (a hard link), and is closed to MCP clients" : undefined;
}

function lookAt(file: Buffer): Looked {
  try {
    const stat = lstatSync(file, { throwIfNoEntry: false });
    return stat?.isDirectory() === true ? "folder" : { names: stat?.nlink ?? 1 };
  } catch {
    return { names: 1 }; // Whoever opens it is told what is wrong.
  }
}

/** What is there under these very characters, else what they stand for when they are escapes. */
function toBytes(text: string, field: string): Buffer {
  const literal = Buffer.from(text);
  const read = readName(text);
  if (read.equals(literal) || isThere(literal)) return literal;
  // An escaped `..` or `/` would be a second way to write a path, past whoever looks at the first.
  if (read.includes(0) || read.toString("latin1").split("/").length !== text.split("/").length || hasDots(read)) {
    throw new CommandError(
      `\`${field}\` ${text} holds an escaped dot, slash or NUL as part of its way; write the path without escapes.`,
    );
  }
  return read;
}

function hasDots(file: Buffer): boolean {
  return file
    .toString("latin1")
    .split("/")
    .some((name) => name === "." || name === "..");
}

function isThere(file: Buffer): boolean {
  try {
    return lstatSync(file, { throwIfNoEntry: false }) !== undefined;
  } catch {
    return false;
  }
}
