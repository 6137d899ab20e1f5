import { closeSync, constants, futimesSync, openSync, readFileSync, rmSync, statSync, writeSync } from "node:fs";
import path from "node:path";
import type { Home } from "../paths.ts";

/**
 * What a daemon runs, written down while it can: one whose event loop is blocked cannot say so itself. The file's time is
 * when the loop was last seen to turn, or one of these to begin.
 */
interface Doing {
  readonly pid: number;
  readonly commands: readonly string[];
}

/** A loop that turns says so four times a second. */
const blockedMs = 2_000;
const maxNamed = 3;
/** Always the same, so that nothing of a longer text is left behind a shorter one. */
const fileBytes = 600;

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
  write(commands: readonly string[], now: number): void {
    if (this.#isEmpty && commands.length === 0) return;
    this.#isEmpty = commands.length === 0;
    try {
      // A link would have us write where somebody else wants it.
      this.#fd ??= openSync(
        this.#file,
        constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW,
        0o600,
      );
      const named: Doing = { pid: this.#pid, commands: commands.slice(0, maxNamed) };
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

/**
 * Says what keeps a silent daemon from answering: "blocked for 12 s, since 10:31:07, while shop_sync ran"; undefined
 * when that is not known.
 */
export function whatBlocks(home: Home, key: string, pid: number, now: number): string | undefined {
  const file = doingFile(home, key);
  const { pid: whose, commands = [] } = readDoing(file);
  const at = statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? now;
  const ms = now - at;
  if (whose !== pid || ms < blockedMs || commands.length === 0) return undefined;
  return `blocked for ${Math.round(ms / 1000)} s, since ${new Date(at).toTimeString().slice(0, 8)}, while ${commands.join(", ")} ran`;
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
