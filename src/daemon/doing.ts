import { closeSync, constants, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import path from "node:path";
import type { Home } from "../paths.ts";

/** What a daemon runs, written down while it can: one whose event loop is blocked cannot say so itself. */
interface Doing {
  readonly pid: number;
  /** When its event loop was last seen to turn, or one of them to begin. */
  readonly at: number;
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
 * was not running already.
 */
export class DoingFile {
  readonly #file: string;
  readonly #pid: number;
  #fd: number | undefined;
  #isEmpty = true;

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
      const text = JSON.stringify({
        pid: this.#pid,
        at: now,
        commands: commands.slice(0, maxNamed),
      } satisfies Doing).padEnd(fileBytes);
      writeSync(this.#fd, text, 0);
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
  const { pid: whose, at = now, commands = [] } = readDoing(doingFile(home, key));
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
