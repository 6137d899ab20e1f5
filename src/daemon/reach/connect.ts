import type { Socket } from "node:net";
import { sleep, systemClock } from "../../clock.ts";
import { isOutOfDescriptors } from "../../errors.ts";
import { thisProgram } from "../../program/program.ts";
import { whatBlocks } from "../doing.ts";
import type { DaemonReply, Greeting } from "../greeting.ts";
import { type DaemonRecord, readRecord } from "../record.ts";
import { askDaemon, type Greeted, greet } from "./ask-daemon.ts";
import { type DaemonAddress, lookAgainMs, startLimitMs, startOrWait } from "./start.ts";
import { DaemonFull, DaemonUnreachable, KeyOutdated, refuseGone } from "./unreachable.ts";

/**
 * Reaches a project's daemon, or has it started. Imports next to nothing beside Node's own modules, so that a front
 * starts in a blink.
 */

/** Who is not let in for this long is told why, and goes on trying. */
const fullLimitMs = 5_000;
const fullPauseMs = 250;

/**
 * A connection on which the daemon has said welcome; what comes next is MCP. `folder` is where the session works;
 * `onAbsent` comes before one is started.
 */
export async function reachDaemon(
  address: DaemonAddress,
  folder: string | undefined,
  onAbsent: () => Promise<void> = async () => {},
): Promise<Socket> {
  const { key, host, session } = address;
  const hello: Greeting = {
    meanwhile: "hello",
    key,
    ...(host !== undefined && { host }),
    ...(folder !== undefined && { folder }),
    ...(session !== undefined && { env: session }),
  };
  const end = systemClock.monotonic() + startLimitMs;
  const endFull = systemClock.monotonic() + fullLimitMs;
  for (;;) {
    refuseGone(address.home, address.isHomeKnown);
    const { known, found } = await look(address, hello);
    if (found === "full") {
      if (systemClock.monotonic() > endFull) throw new DaemonFull(known?.pid);
      await sleep(systemClock, fullPauseMs);
      continue;
    }
    if (found?.reply?.meanwhile === "welcome" && isSame(found.reply.env, address.names)) return found.socket;
    found?.socket.destroy();
    // Its code reads other variables by now, and the values it has of them are another session's.
    if (found?.reply?.meanwhile === "welcome") throw new KeyOutdated(found.reply.env);
    if (systemClock.monotonic() > end) throw silent(address, known, found !== undefined);
    if (found === undefined) {
      await onAbsent();
      await startOrWait(address, known);
    } else await sleep(systemClock, lookAgainMs);
  }
}

/**
 * Who is there, as its record says and as it answers; "full" where it cannot take, or we cannot make, another
 * connection.
 */
async function look(
  address: DaemonAddress,
  hello: Greeting,
): Promise<{ readonly known?: DaemonRecord | undefined; readonly found: Greeted | "full" | undefined }> {
  let known: DaemonRecord | undefined;
  try {
    known = readRecord(address.home, address.key);
    const found = await greet(address, hello);
    const isFull = found?.isHungUp === true || (found?.reply?.meanwhile === "no" && found.reply.why === "full");
    if (isFull) found.socket.destroy();
    return { known, found: isFull ? "full" : found };
  } catch (error) {
    if (isOutOfDescriptors(error)) return { known, found: "full" };
    throw error;
  }
}

function isSame(names: readonly string[], others: readonly string[]): boolean {
  return names.length === others.length && names.every((name, at) => name === others[at]);
}

function silent({ home, key }: DaemonAddress, known: DaemonRecord | undefined, isThere: boolean): DaemonUnreachable {
  const pid = isThere ? known?.pid : undefined;
  const who = pid === undefined ? "The daemon" : `Daemon ${pid}`;
  const blocked = pid === undefined ? undefined : whatBlocks(home, key, pid, systemClock.now());
  const why = blocked === undefined ? "" : `: it was ${blocked.text} (${blocked.cure})`;
  const cure = isThere ? `\`${thisProgram.name} daemon stop --now\` ends it` : `see ${home.daemonLog}`;
  const what = `${who} did not answer within ${startLimitMs / 1000} s${why}`;
  return new DaemonUnreachable(`${what}; ${cure}, or serve with --in-process.`, {
    forClients: why === "" ? `${what}; its log says why.` : `${what}.`,
  });
}

/**
 * What the daemon tells of itself, which is started where none is: by us or by a front that has missed it, and then it
 * holds the lock a while before it listens. Undefined when it is there and does not answer, or nobody is in time.
 */
export async function reachStatus(
  address: DaemonAddress,
): Promise<(DaemonReply & { readonly meanwhile: "status" }) | undefined> {
  const { home, key } = address;
  const end = systemClock.monotonic() + startLimitMs;
  for (;;) {
    const known = readRecord(home, key);
    const reply = await askDaemon(home, key, { meanwhile: "status" });
    if (reply !== "silent" && reply?.meanwhile === "status") return reply;
    if (reply === "silent" || systemClock.monotonic() > end) return undefined;
    await startOrWait(address, known);
  }
}
