import type { Completer } from "../command/command.ts";

/** One entry of a folder, as `readdir(…, { withFileTypes: true })` gives it. */
interface FolderEntry {
  readonly name: string;
  isDirectory(): boolean;
}

export interface PathOptions {
  /**
   * What is in a folder: `(folder) => readdir(folder, { withFileTypes: true })`, or `opendir`, which is read no further
   * than needed.
   */
  readonly readFolder: (folder: string) => FolderEntries | Promise<FolderEntries>;
  /** Where a relative path begins. Default: the working folder. */
  readonly base?: string;
  /** Also absolute paths and `..`: for the person whose machine it is, not for callers from elsewhere. */
  readonly anywhere?: boolean;
  /** `folders`: folders alone. */
  readonly only?: "folders";
  /** Which files; folders are always offered, as the way to them. */
  readonly accept?: (name: string) => boolean;
}

type FolderEntries = Iterable<FolderEntry> | AsyncIterable<FolderEntry>;

const MAX_ENTRIES = 10_000;
const nothingThere = new Set(["ENOENT", "ENOTDIR"]);

/**
 * Completes the path of a file, folder by folder; a folder ends with `/`. Names that begin with a dot are offered when
 * a dot was typed. A path that leads out of `base` has nothing to offer unless `anywhere` is set.
 */
export function completePath(options: PathOptions): Completer {
  return async (partial, { signal }) => {
    const cut = partial.lastIndexOf("/") + 1;
    const typedFolder = partial.slice(0, cut);
    const typedName = partial.slice(cut);
    if (typedFolder.includes("\0") || (options.anywhere !== true && leadsOut(typedFolder))) return [];
    const found: string[] = [];
    for (const entry of await listFolder(options, typedFolder, signal)) {
      const isFolder = entry.isDirectory();
      if (entry.name.startsWith(".") && !typedName.startsWith(".")) continue;
      if (!isFolder && (options.only === "folders" || options.accept?.(entry.name) === false)) continue;
      found.push(`${typedFolder}${entry.name}${isFolder ? "/" : ""}`);
    }
    return found.sort((a, b) => (a < b ? -1 : 1));
  };
}

function leadsOut(folder: string): boolean {
  return (
    folder.startsWith("/") ||
    /^[A-Za-z]:/.test(folder) ||
    /(^|[\\/])\.\.([\\/]|$)/.test(folder) ||
    folder.startsWith("\\")
  );
}

async function listFolder(options: PathOptions, typedFolder: string, signal: AbortSignal): Promise<FolderEntry[]> {
  const { base = "." } = options;
  const folder = typedFolder.startsWith("/")
    ? typedFolder
    : typedFolder === ""
      ? base
      : `${base.replace(/\/$/, "")}/${typedFolder}`;
  const entries: FolderEntry[] = [];
  try {
    for await (const entry of await options.readFolder(folder)) {
      signal.throwIfAborted();
      entries.push(entry);
      if (entries.length >= MAX_ENTRIES) break;
    }
  } catch (error) {
    // A folder that is not there holds nothing, and that is an answer; one that may not be read is not.
    if (error instanceof Error && "code" in error && nothingThere.has(String(error.code))) return [];
    throw error;
  }
  return entries;
}

/** A task as its completer shows it. */
export interface KnownTask {
  readonly taskId: string;
  /** Shown beside the id, e.g. `working`. */
  readonly status: string;
  readonly statusMessage?: string | undefined;
}

/**
 * Completes the id of a task, with its status as the description. The look-up gives the tasks this caller may see, the
 * likeliest first.
 */
export function completeTaskId(
  findTasks: (partial: string, signal: AbortSignal) => readonly KnownTask[] | Promise<readonly KnownTask[]>,
): Completer {
  return async (partial, { signal }) =>
    (await findTasks(partial, signal)).map(({ taskId, status, statusMessage }) => ({
      value: taskId,
      description: statusMessage === undefined || statusMessage === "" ? status : `${status}: ${statusMessage}`,
    }));
}
