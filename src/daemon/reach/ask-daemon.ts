import { createConnection, type Socket } from "node:net";
import { systemClock, within } from "../../clock.ts";
import type { Home } from "../../paths.ts";
import { system } from "../../system/system.ts";
import { type DaemonReply, type Greeting, readFirstLine, readReply, toLine } from "../greeting.ts";
import { isProved, showSecret } from "../proof.ts";
import { readRecord } from "../record.ts";
import { DaemonUnreachable } from "./unreachable.ts";

/** A daemon that is stopped or stuck accepts connections, and says nothing. */
const answerLimitMs = 5_000;

/** Asks a running daemon one thing: undefined when none is running, "silent" when one is there and does not answer. */
export async function askDaemon(
  home: Home,
  key: string,
  greeting: Greeting,
): Promise<DaemonReply | "silent" | undefined> {
  const found = await greet({ home, key }, greeting);
  found?.socket.destroy();
  return found === undefined ? undefined : (found.reply ?? "silent");
}

/**
 * Tells a daemon to stop, and resolves when it has heard it: `left`, when it has ended its work, to the number of tasks
 * that wait for the next one. `hangUp`: nobody waits for that here.
 */
export async function stopDaemon(
  home: Home,
  key: string,
  how: { readonly isNow: boolean; readonly keepsQuestions: boolean },
): Promise<{ readonly left: Promise<number | undefined>; readonly hangUp: () => void }> {
  const found = await greet({ home, key }, { meanwhile: "stop", ...how });
  if (found?.reply === undefined) {
    found?.socket.destroy();
    return { left: Promise.resolve(undefined), hangUp: () => {} };
  }
  const { socket } = found;
  const left = new Promise<number | undefined>((resolve) => {
    socket.on("close", () => resolve(undefined));
    readFirstLine(socket, (line) => {
      const reply = line === undefined ? undefined : readReply(line);
      resolve(reply?.meanwhile === "left" ? reply.waiting : undefined);
      socket.destroy();
    });
    socket.resume();
  });
  return { left, hangUp: () => void socket.destroy() };
}

export interface Greeted {
  readonly socket: Socket;
  /** Undefined when somebody listens and says nothing. */
  readonly reply: DaemonReply | undefined;
  /**
   * It lives, and has hung up, or taken no call, without a word: the system does that for who has no file descriptors
   * left.
   */
  readonly isHungUp?: boolean;
}

/** Says one thing to a daemon that has a record, and waits for its answer; undefined when nobody is there. */
export async function greet(
  { home, key }: { readonly home: Home; readonly key: string },
  greeting: Greeting,
): Promise<Greeted | undefined> {
  const record = readRecord(home, key);
  if (record === undefined) return undefined;
  const refusal = system.refusalOfSocket(record.socket);
  if (refusal !== undefined) throw new DaemonUnreachable(`The daemon's socket cannot be trusted: ${refusal}.`);
  const { secret } = record;
  const shown = secret === undefined ? undefined : showSecret(secret);
  const socket = createConnection(record.socket);
  let isRefused = false;
  const replied = new Promise<DaemonReply | undefined>((resolve) => {
    socket.on("error", ({ code }: NodeJS.ErrnoException) => {
      isRefused = code === "ECONNREFUSED" || code === "ENOENT";
      resolve(undefined);
    });
    socket.on("close", () => resolve(undefined));
    socket.on("connect", () => socket.write(toLine({ ...greeting, ...shown })));
    readFirstLine(socket, (line) => {
      const { proof = "", ...answer } = (line === undefined ? undefined : readReply(line)) ?? {};
      // Somebody else has taken the name of one that is gone.
      isRefused = secret !== undefined && !isProved(secret, "daemon", { ...shown, proof });
      resolve(isRefused || !("meanwhile" in answer) ? undefined : answer);
    });
  });
  const reply = await within(systemClock, answerLimitMs, replied, () => "silent" as const);
  if (reply === undefined) {
    socket.destroy();
    // Nobody listens; or who did has ended, or is about to, and has taken its record away.
    const isThere = !isRefused && readRecord(home, key)?.pid === record.pid && system.isAlive(record.pid);
    return isThere ? { socket, reply: undefined, isHungUp: true } : undefined;
  }
  socket.removeAllListeners("close");
  return { socket, reply: reply === "silent" ? undefined : reply };
}
