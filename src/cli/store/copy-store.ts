import { realpathSync } from "node:fs";
import { formatDuration } from "../../clock.ts";
import { CommandError, UsageError } from "../../errors.ts";
import { createId } from "../../ids.ts";
import { thisProgram } from "../../program/program.ts";
import { type CopyProgress, compareTasks, copyTasks } from "../../store/copy-tasks.ts";
import { openTransfer } from "../../store/manage.ts";
import { isStoreFile } from "../../store/open.ts";
import { apiKeysTable, type TransferSide, type TransferTarget } from "../../store/transfer.ts";
import { clean, StageView, type Terminal } from "../terminal.ts";

interface Sides {
  readonly from: TransferSide;
  readonly to: TransferTarget;
}

/**
 * Copies one store into another. A target is empty, or what an earlier run of the same copy has left; one that has tasks
 * or API keys of its own is refused, whatever they are: two stores are never mixed.
 */
export async function copyStore(source: string, target: string, terminal: Terminal): Promise<void> {
  if (isSameFile(source, target)) throw new UsageError("--from and --to are the same store.");
  const from = await openTransfer(source, "source");
  try {
    await refuseLive(from);
    const to = await openTransfer(target, "target");
    try {
      if (to.place === from.place) throw new UsageError("--from and --to are the same store.");
      await copyInto({ from, to }, terminal);
    } finally {
      await to.close();
    }
  } finally {
    await from.close();
  }
}

async function copyInto(sides: Sides, terminal: Terminal): Promise<void> {
  const { from, to } = sides;
  const unfinished = await to.readUnfinished();
  if (unfinished === undefined && (await isOccupied(to))) return await refuseOccupied(sides, terminal);
  if (unfinished !== undefined && unfinished !== from.place)
    throw new CommandError(
      `${to.place} holds an unfinished copy of ${unfinished}; finish that one, or name a store that is empty.`,
    );
  const copier = createId();
  await to.begin({ source: from.place, copier });
  const { tasks, written, digest } = await shown(terminal, (onProgress) => copyTasks({ ...sides, copier, onProgress }));
  const earlier = written < tasks ? `, ${tasks - written} of them by an earlier run` : "";
  terminal.print(`${count(tasks, "task")} copied from ${clean(from.place)} to ${clean(to.place)}${earlier}.\n`);
  sayEqual(terminal, digest);
  const { live } = await from.count();
  if (live > 0)
    terminal.print(
      `${count(live, "live task")} would run in both: start nothing on ${clean(from.place)} any more, and set ${thisProgram.variable("STORE")} to the other.\n`,
    );
}

async function isOccupied(to: TransferTarget): Promise<boolean> {
  return (await to.count()).tasks > 0 || (await to.readTable(apiKeysTable)).length > 0;
}

/** Whoever runs a finished copy again is told so; whatever else is there is not touched. */
async function refuseOccupied(sides: Sides, terminal: Terminal): Promise<void> {
  const same = await shown(terminal, (onProgress) => compareTasks({ ...sides, onProgress }));
  if (same === undefined)
    throw new CommandError(
      `${sides.to.place} has tasks or API keys of its own, and two stores are never mixed; nothing was changed. Name a store that is empty.`,
    );
  terminal.print(
    `Nothing to do: ${count(same.tasks, "task")} of ${clean(sides.from.place)} are in ${clean(sides.to.place)}.\n`,
  );
  sayEqual(terminal, same.digest);
}

/** A worker that may still write would do so to one of two. */
async function refuseLive(from: TransferSide): Promise<void> {
  const workers = await from.liveWorkers();
  if (workers.length === 0) return;
  const tasks = workers.reduce((sum, worker) => sum + worker.tasks, 0);
  const left = formatDuration(Math.max(...workers.map(({ leftMs }) => leftMs)));
  throw new CommandError(
    `${count(workers.length, "worker")} of ${from.place} ${workers.length === 1 ? "holds" : "hold"} ${count(tasks, "task")}: stop them first (\`${thisProgram.name} daemon stop --all\`, and every serve and worker that uses it), or wait ${left} if they are dead; then run the same line again.`,
  );
}

async function shown<T>(terminal: Terminal, act: (tell: (progress: CopyProgress) => void) => Promise<T>): Promise<T> {
  const view = new StageView(terminal);
  try {
    return await act(({ stage, done, total }) => {
      const message = `${stage}, ${done} of ${count(total, "task")}`;
      const percentage = total === 0 ? 100 : (100 * done) / total;
      view.progress({ value: done, total, message, percentage, context: undefined });
    });
  } finally {
    view.end();
  }
}

function sayEqual(terminal: Terminal, digest: string): void {
  terminal.print(`All of it was read back from both sides and is the same: sha256 ${digest.slice(0, 16)}.\n`);
}

function isSameFile(source: string, target: string): boolean {
  if (source === target) return true;
  if (!isStoreFile(source) || !isStoreFile(target)) return false;
  try {
    return realpathSync(source) === realpathSync(target);
  } catch {
    return false;
  }
}

function count(number: number, word: string): string {
  return `${number} ${word}${number === 1 ? "" : "s"}`;
}
