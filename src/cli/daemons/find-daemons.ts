import { rmSync } from "node:fs";
import path from "node:path";
import { systemClock } from "../../clock.ts";
import { whatBlocks } from "../../daemon/doing.ts";
import { addressOf } from "../../daemon/front.ts";
import type { DaemonStatus } from "../../daemon/greeting.ts";
import { askDaemon } from "../../daemon/reach/ask-daemon.ts";
import type { DaemonAddress } from "../../daemon/reach/start.ts";
import { DaemonUnreachable } from "../../daemon/reach/unreachable.ts";
import { type DaemonRecord, readRecords, removeRecord } from "../../daemon/record.ts";
import { CommandError, messageOf, RuntimeError } from "../../errors.ts";
import type { Home } from "../../paths.ts";
import { thisProgram } from "../../program/program.ts";
import { flagWords } from "../../project/project.ts";
import { system } from "../../system/system.ts";
import { quoteWord } from "../remote/server-target.ts";
import type { TypedVerb } from "../verb.ts";

/** A daemon that has a record: what it tells of itself, or why it does not; and how it was started. */
export type FoundDaemon = { readonly key: string; readonly pid: number; readonly record: DaemonRecord } & (
  | ({ readonly kind: "well" } & DaemonStatus)
  | { readonly kind: "silent"; readonly blocked: string | undefined }
  /** A draining daemon without a socket. */
  | { readonly kind: "unreachable" }
  | { readonly kind: "refused"; readonly why: string }
);

/** Every daemon that is there. The record of one that has crashed is of no more use. */
export async function findDaemons(home: Home): Promise<readonly FoundDaemon[]> {
  const found: FoundDaemon[] = [];
  for (const [key, record] of recordsOf(home)) {
    const { pid } = record;
    if (record.socket === "") {
      if (isStillProcess(record)) found.push({ kind: "unreachable", key, pid, record });
      else removeRecord(home, key, pid);
      continue;
    }
    try {
      const reply = await askDaemon(home, key, { meanwhile: "status" });
      if (reply === "silent")
        found.push({ kind: "silent", key, pid, record, blocked: whatBlocks(home, key, pid, systemClock.now())?.text });
      else if (reply?.meanwhile === "status") {
        const { meanwhile: _word, ...told } = reply;
        // The socket that a draining daemon had before belongs to the next one.
        const { socket } = record.isDraining === true ? record : told;
        found.push({ kind: "well", key, record, ...told, socket });
      } else if (!system.isAlive(pid)) removeDead(home, key, record);
    } catch (error) {
      if (!(error instanceof DaemonUnreachable)) throw error;
      found.push({ kind: "refused", key, pid, record, why: error.message });
    }
  }
  return found;
}

/** False where the process has ended, also where another process has its ID by now. */
function isStillProcess({ pid, start }: DaemonRecord): boolean {
  return system.isAlive(pid) && start !== undefined && system.beganAt(pid, start) !== false;
}

/** Nobody follows a draining daemon at its socket, so a killed one leaves the file behind. */
function removeDead(home: Home, key: string, { pid, socket, isDraining }: DaemonRecord): void {
  removeRecord(home, key, pid);
  if (isDraining === true && path.dirname(socket) === home.runFolder) rmSync(socket, { force: true });
}

function recordsOf(home: Home): ReturnType<typeof readRecords> {
  try {
    return readRecords(home);
  } catch (error) {
    throw new RuntimeError("HOME_UNUSABLE", `Cannot read the home folder ${home.folder}: ${messageOf(error)}.`, {
      cause: error,
    });
  }
}

/**
 * What the daemon of this project is found by; undefined where its config cannot be read, which is no reason to say
 * nothing about daemons.
 */
export async function ownAddress({ flags, terminal, context }: TypedVerb): Promise<OwnDaemon | undefined> {
  try {
    return await addressOf(flags, { mayLoad: false, place: context });
  } catch (error) {
    if (!(error instanceof DaemonUnreachable)) throw error;
    terminal.say(`${terminal.colors.yellow("!")} Which daemon is this project's is not known: ${error.message}\n`);
    return undefined;
  }
}

export type OwnDaemon = Pick<DaemonAddress, "key" | "project">;

/**
 * Whether a daemon is this project's, whatever it was started with. Flags that are typed name the project themselves;
 * without any, everything counts that was started in this folder.
 */
export function isOwn(
  { key, record }: FoundDaemon,
  own: OwnDaemon | undefined,
  { flags, context }: Pick<TypedVerb, "flags" | "context">,
): boolean {
  if (own !== undefined && (key === own.key || record.project === own.project)) return true;
  const isTyped = flags.commands !== undefined || flags.bundled !== undefined;
  return !isTyped && record.folder === context.cwd;
}

/**
 * The daemon that is meant: the one that was named, or that `serve` would use here and now, or else the only one of
 * this project. Draining daemons count where no other daemon of this project runs.
 */
export function chooseDaemon(
  typed: Pick<TypedVerb, "flags" | "context"> & { readonly pid: number | undefined },
  daemons: readonly FoundDaemon[],
  own: OwnDaemon | undefined,
): FoundDaemon | undefined {
  const { pid } = typed;
  if (pid !== undefined) {
    const named = daemons.find((daemon) => daemon.pid === pid);
    if (named === undefined)
      throw new CommandError(
        `No daemon ${pid} runs in this home; \`${thisProgram.name} daemon status\` shows those that do.`,
      );
    return named;
  }
  const all = daemons.filter((daemon) => isOwn(daemon, own, typed));
  const serving = all.filter(({ record }) => record.isDraining !== true);
  const candidates = serving.length > 0 ? serving : all;
  const exact = candidates.find(({ key }) => key === own?.key);
  if (exact !== undefined || candidates.length < 2) return exact ?? candidates[0];
  const named = candidates.map((daemon) => `${daemon.pid} (${startOf(daemon.record) || "no flags"})`).join(", ");
  throw new CommandError(
    `${candidates.length} daemons of this project run: ${named}; name one by its pid, as \`${thisProgram.name} daemon status\` shows it.`,
  );
}

/** How a daemon was started, as words of a command line. */
export function startOf({ flags = {} }: DaemonRecord): string {
  const { scope: _ours, ...typed } = flags;
  return flagWords(typed).map(quoteWord).join(" ");
}
