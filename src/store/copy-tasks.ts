import { createHash } from "node:crypto";
import { CommandError } from "../errors.ts";
import { failpoint } from "../failpoint.ts";
import {
  plainTables,
  type TransferSide,
  type TransferTarget,
  type TransferTask,
  toLine,
  toPlainLine,
} from "./transfer.ts";

/** What is in memory at once: so many tasks, and no more bytes than that unless one task alone has them. */
const pageTasks = 200;
const pageBytes = 4 * 1024 * 1024;

export interface CopyProgress {
  readonly stage: "copying" | "comparing";
  readonly done: number;
  readonly total: number;
}

interface Copied {
  readonly tasks: number;
  /** How many were written now: fewer, after an interruption, than there are. */
  readonly written: number;
  readonly digest: string;
}

interface Copying {
  readonly from: TransferSide;
  readonly to: TransferTarget;
  readonly copier: string;
  readonly onProgress: (progress: CopyProgress) => void;
}

/**
 * Brings a marked target to where the source is, page by page, whatever an earlier run has left there; then reads all of
 * both again, and finishes the target when they are the same.
 */
export async function copyTasks(copying: Copying): Promise<Copied> {
  const { from, to, copier } = copying;
  let written = 0;
  for await (const { here, there } of pagesOf(copying, "copying")) {
    const known = new Map(there.map((task) => [task.number, toLine(task)]));
    const tasks = here.filter((task) => known.get(task.number) !== toLine(task));
    const wanted = new Set(here.map(({ number }) => number));
    const gone = there.filter(({ number }) => !wanted.has(number)).map(({ number }) => number);
    if (tasks.length + gone.length > 0) heldOrThrow(await to.write(copier, { gone, tasks }), to);
    written += tasks.length;
    failpoint("after-copied-page");
  }
  for (const table of plainTables) heldOrThrow(await to.writeTable(copier, table, await from.readTable(table)), to);
  failpoint("before-comparison");
  const compared = await compareTasks(copying);
  if (compared === undefined)
    throw new CommandError(
      `Tasks changed in ${from.place} while they were copied, so ${to.place} is not finished; stop what uses ${from.place}, and run the same line again: it goes on.`,
    );
  heldOrThrow(await to.finish(copier), to);
  return { ...compared, written };
}

/** Reads all of both sides; undefined when they are not the same. */
export async function compareTasks(
  copying: Pick<Copying, "from" | "to" | "onProgress">,
): Promise<{ readonly tasks: number; readonly digest: string } | undefined> {
  const { from, to } = copying;
  const sides = [createHash("sha256"), createHash("sha256")] as const;
  let tasks = 0;
  for await (const { here, there } of pagesOf(copying, "comparing")) {
    for (const task of here) sides[0].update(`${toLine(task)}\n`);
    for (const task of there) sides[1].update(`${toLine(task)}\n`);
    tasks += here.length;
  }
  for (const table of plainTables)
    for (const [at, side] of [from, to].entries()) {
      const lines = (await side.readTable(table)).map((row) => toPlainLine(row, table));
      sides[at]?.update(`${table.name}\n${lines.sort().join("\n")}\n`);
    }
  const [digest, other] = sides.map((side) => side.digest("hex"));
  return digest === undefined || digest !== other ? undefined : { tasks, digest };
}

interface Page {
  readonly here: readonly TransferTask[];
  readonly there: readonly TransferTask[];
}

/** The source's tasks in pages, each with what the target has in its place. */
async function* pagesOf(
  { from, to, onProgress }: Pick<Copying, "from" | "to" | "onProgress">,
  stage: CopyProgress["stage"],
): AsyncGenerator<Page> {
  const { tasks: total } = await from.count();
  let done = 0;
  for (let after = 0; ; ) {
    const upTo = await endOfPage(from, after);
    const here = await from.read(after, upTo);
    yield { here, there: await to.read(after, upTo) };
    done += here.length;
    onProgress({ stage, done, total: Math.max(done, total) });
    if (upTo === Number.MAX_SAFE_INTEGER) return;
    after = upTo;
  }
}

/** The last one goes as far as numbers go: what the target has behind it is seen too. */
async function endOfPage(from: TransferSide, after: number): Promise<number> {
  const next = await from.weigh(after, pageTasks);
  let bytes = 0;
  for (const [at, task] of next.entries()) {
    bytes += task.bytes;
    if (bytes > pageBytes) return at === 0 ? task.number : (next[at - 1]?.number ?? task.number);
  }
  return next.length < pageTasks ? Number.MAX_SAFE_INTEGER : (next.at(-1)?.number ?? Number.MAX_SAFE_INTEGER);
}

function heldOrThrow(isHeld: boolean, { place }: TransferTarget): void {
  if (!isHeld)
    throw new CommandError(
      `Another run copies into ${place}, or has finished it; this one has stopped, and that one counts.`,
    );
}
