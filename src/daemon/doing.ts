import { closeSync, constants, futimesSync, openSync, readFileSync, rmSync, statSync, writeSync } from "node:fs";
import path from "node:path";
import type { Home } from "../paths.ts";

/** What may block the event loop of a daemon. */
interface Activity {
  /** The commands that run. */
  readonly commands: readonly string[];
  /** The commands whose files are being loaded, the first ones first. */
  readonly loading: readonly string[];
}

/**
 * What a daemon runs, written down while it can: one whose event loop is blocked cannot say so itself. The file's time is
 * when the loop was last seen to turn, or one of these to begin.
 */
interface Doing extends Activity {
  readonly pid: number;
}

/** A loop that turns says so four times a second. */
const blockedMs = 2_000;
const maxNamed = 3;
/** So many files begin to load at once. */
const maxLoading = 8;
/** Always the same, so that nothing of a longer text is left behind a shorter one. */
const fileBytes = 1_600;

const doingFile = (home: Home, key: string) => path.join(home.runFolder, `${key}.doing`);

/**
 * The daemon's side: a file that is kept open, so that a command that begins costs one small write, and only where it
 * was not running already; as long as the same ones run, only the file's time changes.
 */
export class DoingFile {
  readonly #file: string;
  readonly #pid: number;
  #fd: number | undefined;
  #isEmpty = true;
  #text = "";

  constructor(home: Home, key: string, pid: number) {
    this.#file = doingFile(home, key);
    this.#pid = pid;
  }

  /** These run now. Must not throw: it is a courtesy to whoever waits. */
  write({ commands, loading }: Activity, now: number): void {
    const isEmpty = commands.length === 0 && loading.length === 0;
    if (this.#isEmpty && isEmpty) return;
    this.#isEmpty = isEmpty;
    try {
      // A link would have us write where somebody else wants it.
      this.#fd ??= openSync(
        this.#file,
        constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW,
        0o600,
      );
      const named: Doing = {
        pid: this.#pid,
        commands: commands.slice(0, maxNamed),
        loading: loading.slice(0, maxLoading),
      };
      const text = JSON.stringify(named).padEnd(fileBytes);
      if (text !== this.#text) writeSync(this.#fd, text, 0);
      this.#text = text;
      futimesSync(this.#fd, now / 1000, now / 1000);
    } catch {
      // Then nobody is told.
    }
  }

  close(): void {
    if (this.#fd === undefined) return;
    closeSync(this.#fd);
    this.#fd = undefined;
    // The next daemon of this key may have begun, and written to it.
    if (readDoing(this.#file).pid === this.#pid) rmSync(this.#file, { force: true });
  }
}

/** Why a daemon does not answer, and what helps. */
interface BlockedDaemon {
  /** "blocked for 12 s, since 10:31:07, while shop_sync ran" */
  readonly text: string;
  readonly cure: string;
}

/** Says what keeps a silent daemon from answering; undefined when that is not known. */
export function whatBlocks(home: Home, key: string, pid: number, now: number): BlockedDaemon | undefined {
  const file = doingFile(home, key);
  const { pid: whose, commands = [], loading = [] } = readDoing(file);
  const at = statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? now;
  const ms = now - at;
  const ran = commands.length === 0 ? [] : [`${commands.join(", ")} ran`];
  const what = [...ran, ...describeLoading(loading)].join(" and ");
  if (whose !== pid || ms < blockedMs || what === "") return undefined;
  const since = new Date(at).toTimeString().slice(0, 8);
  return {
    text: `blocked for ${Math.round(ms / 1000)} s, since ${since}, while ${what}`,
    cure: commands.length === 0 ? fileCure : `${isolationCure}${loading.length === 0 ? "" : `; ${fileCure}`}`,
  };
}

const isolationCure = 'isolation: "process" prevents that';
/** The file of an isolated command is loaded in the daemon too. */
const fileCure = "a loop at the top level of a file?";

function describeLoading(names: readonly string[]): string[] {
  if (names.length === 0) return [];
  return [names.length === 1 ? `the file of ${names[0]} was loaded` : `the files of ${names.join(", ")} were loaded`];
}

/** The folder is this user's alone, so what is there is a daemon's, or nothing. */
function readDoing(file: string): Partial<Doing> {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as Doing;
  } catch {
    // None was written, or it is just being written.
    return {};
  }
}
