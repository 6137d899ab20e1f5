import { type BigIntStats, statSync } from "node:fs";
import path from "node:path";
import type { Clock } from "../../clock.ts";
import { RuntimeError } from "../../errors.ts";
import { thisProgram } from "../../program/program.ts";

/** A file as it was when it was opened. */
interface OpenFile {
  readonly path: string;
  readonly identity: string | undefined;
}

/** What a system writes down of a moment may be this much older than it. */
const tickMs = 50;
const second = 1_000_000_000n;

/**
 * The files of an open database. SQLite keeps the two beside it for as long as anybody has it open.
 *
 * Linux gives a file that somebody has looked at a new time with its next write, however short ago it had the last, and
 * that time has to reach the disk with the write: looking at the log ahead of every transaction makes each a third
 * slower. Nobody can put another file in its place without changing the folder, so that is looked at instead.
 */
export class OpenFiles {
  readonly #clock: Clock;
  readonly #folder: string;
  readonly #log: OpenFile;
  readonly #others: readonly OpenFile[];
  #changed: bigint | undefined;
  #changedUntil = Number.NEGATIVE_INFINITY;

  constructor(database: string, clock: Clock) {
    this.#clock = clock;
    this.#folder = path.dirname(database);
    this.#log = asItIs(`${database}-wal`);
    this.#others = [database, `${database}-shm`].map(asItIs);
  }

  /** SQLite goes on writing to a file that was deleted or replaced, where nobody will ever find what it acknowledged. */
  refuseReplaced(): void {
    this.#others.forEach(refuseOther);
    if (this.#mayHaveOthers()) refuseOther(this.#log);
  }

  /** Two changes within one tick look like one. */
  #mayHaveOthers(): boolean {
    const changed = statOf(this.#folder)?.mtimeNs;
    const now = this.#clock.monotonic();
    if (changed !== this.#changed) {
      this.#changed = changed;
      this.#changedUntil = now + tickMs;
    }
    // Some file systems count in seconds.
    return now <= this.#changedUntil || changed === undefined || changed % second === 0n;
  }
}

function refuseOther({ path, identity }: OpenFile): void {
  const found = asItIs(path).identity;
  if (found === identity) return;
  const what = found === undefined ? "deleted" : "replaced";
  throw new RuntimeError(
    "STORE_GONE",
    `The task database's file ${path} was ${what} while it was open; put it back, or restart ${thisProgram.title}.`,
    {
      forClients: `The task database was ${what} while the server ran; whoever runs the server has to put it back, or restart the server.`,
    },
  );
}

function asItIs(path: string): OpenFile {
  const stat = statOf(path);
  return { path, identity: stat === undefined ? undefined : `${stat.dev}:${stat.ino}` };
}

function statOf(path: string): BigIntStats | undefined {
  return statSync(path, { bigint: true, throwIfNoEntry: false });
}
