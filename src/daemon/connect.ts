import { spawn } from "node:child_process";
import {
  closeSync,
  constants,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { createConnection, type Socket } from "node:net";
import path from "node:path";
import type { Readable } from "node:stream";
import { sleep, systemClock } from "../clock.ts";
import { isOutOfDescriptors, outOfDescriptors, RuntimeError } from "../errors.ts";
import { ensureHome, type Home } from "../paths.ts";
import { whatBlocks } from "./doing.ts";
import { type Greeting, type Reply, readReply, toLine } from "./greeting.ts";
import { type DaemonRecord, ensurePrivateFolder, readRecord, refusalOf } from "./record.ts";

/**
 * Reaches a project's daemon, or starts it. Imports next to nothing beside Node's own modules, so that a front starts
 * in a blink.
 */

export interface DaemonAddress {
  readonly home: Home;
  readonly key: string;
  /** The variables that this key counts. */
  readonly names: readonly string[];
  /** Names the project alone, whatever else is part of the key. */
  readonly project: string;
  /** Counts in place of what the MCP client calls itself. */
  readonly host: string | undefined;
  /** Node, and the words that start the daemon. */
  readonly command: readonly [string, ...string[]];
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  /** The home has been there: where it is not, it was taken away, and is not made. */
  readonly isHomeKnown?: boolean;
}

/** The daemon could not be reached or started; the sentence says why. */
export class DaemonUnreachable extends Error {
  override readonly name: string = "DaemonUnreachable";
  /** The same without a path, for the client. Undefined where the sentence itself will do. */
  readonly forClients: string | undefined;

  constructor(message: string, { forClients }: { readonly forClients?: string } = {}) {
    super(message);
    this.forClients = forClients;
  }
}

/** It is there and takes nobody in for now: no reason to give up. */
export class DaemonFull extends DaemonUnreachable {
  override readonly name = "DaemonFull";

  constructor(pid: number | undefined) {
    super(
      `Daemon ${pid ?? ""} takes no more sessions for now: ${outOfDescriptors}. This one is tried again until there is room; --in-process needs no daemon.`.replace(
        "  ",
        " ",
      ),
    );
  }
}

/** The home of a session that has begun is gone: to make an empty one in its place would hide that. */
class HomeGone extends DaemonUnreachable {
  override readonly name = "HomeGone";

  constructor(home: Home) {
    const rest = "put it back, and this session goes on; a new session makes a new home";
    super(`The home folder ${home.folder} is gone, and no other is made in its place: ${rest}.`, {
      forClients: `The home folder is gone, and no other is made in its place; whoever moved it has to put it back, then this session goes on.`,
    });
  }
}

/** The daemon has read the project and come to another key than whoever started it. */
export class KeyOutdated extends DaemonUnreachable {
  override readonly name = "KeyOutdated";
  /** The variables that the key counts, as the daemon says. */
  readonly names: readonly string[];

  constructor(names: readonly string[]) {
    super(
      "The project's config says something else each time it is read, or its code reads other variables; serve with --in-process.",
    );
    this.names = names;
  }
}

const startLimitMs = 30_000;
/** Who is not let in for this long is told why, and goes on trying. */
const fullLimitMs = 5_000;
const fullPauseMs = 250;
const lookAgainMs = 20;
/** A daemon that is stopped or stuck accepts connections, and says nothing. */
const answerLimitMs = 5_000;
/**
 * Whoever starts a daemon is stuck when it takes longer than this, and another may try; one that is dead is not waited
 * for.
 */
const staleStartMs = 10_000;
const maxReplyBytes = 64 * 1024;

/**
 * A connection on which the daemon has said welcome; what comes next is MCP. `folder` is where the session works;
 * `onAbsent` comes before one is started.
 */
export async function reachDaemon(
  address: DaemonAddress,
  folder: string | undefined,
  onAbsent: () => Promise<void> = async () => {},
): Promise<Socket> {
  const { key, host } = address;
  const hello: Greeting = {
    meanwhile: "hello",
    key,
    ...(host !== undefined && { host }),
    ...(folder !== undefined && { folder }),
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

/** Throws where the home of a session that has begun is gone. */
export function refuseGone(home: Home, isHomeKnown = false): void {
  if (isHomeKnown && !existsSync(home.folder)) throw new HomeGone(home);
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
  const why = blocked === undefined ? "" : `: it was ${blocked} (isolation: "process" prevents that)`;
  const cure = isThere ? "`meanwhile daemon stop --now` ends it" : `see ${home.daemonLog}`;
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
): Promise<(Reply & { readonly meanwhile: "status" }) | undefined> {
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

/** Asks a running daemon one thing: undefined when none is running, "silent" when one is there and does not answer. */
export async function askDaemon(home: Home, key: string, greeting: Greeting): Promise<Reply | "silent" | undefined> {
  const found = await greet({ home, key }, greeting);
  found?.socket.destroy();
  return found === undefined ? undefined : (found.reply ?? "silent");
}

/**
 * Tells a daemon to stop, and resolves when it has heard it: `left`, when it has ended its work, to the number of tasks
 * that wait for the next one.
 */
export async function stopDaemon(
  home: Home,
  key: string,
  isNow: boolean,
): Promise<{ readonly left: Promise<number | undefined> }> {
  const found = await greet({ home, key }, { meanwhile: "stop", isNow });
  if (found?.reply === undefined) {
    found?.socket.destroy();
    return { left: Promise.resolve(undefined) };
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
  return { left };
}

interface Greeted {
  readonly socket: Socket;
  /** Undefined when somebody listens and says nothing. */
  readonly reply: Reply | undefined;
  /**
   * It lives, and has hung up, or taken no call, without a word: the system does that for who has no file descriptors
   * left.
   */
  readonly isHungUp?: boolean;
}

async function greet(
  { home, key }: Pick<DaemonAddress, "home" | "key">,
  greeting: Greeting,
): Promise<Greeted | undefined> {
  const record = readRecord(home, key);
  if (record === undefined) return undefined;
  const refusal = refusalOf(record.socket);
  if (refusal !== undefined) throw new DaemonUnreachable(`The daemon's socket cannot be trusted: ${refusal}.`);
  const socket = createConnection(record.socket);
  let isRefused = false;
  const reply = await new Promise<Reply | "silent" | undefined>((resolve) => {
    const cancelLimit = systemClock.after(answerLimitMs, () => resolve("silent"));
    const settle = (answer: Reply | undefined) => {
      cancelLimit();
      resolve(answer);
    };
    socket.on("error", ({ code }: NodeJS.ErrnoException) => {
      isRefused = code === "ECONNREFUSED" || code === "ENOENT";
      settle(undefined);
    });
    socket.on("close", () => settle(undefined));
    socket.on("connect", () => socket.write(toLine(greeting)));
    readFirstLine(socket, (line) => settle(line === undefined ? undefined : readReply(line)));
  });
  if (reply === undefined) {
    socket.destroy();
    // Nobody listens; or who did has ended, or is about to, and has taken its record away.
    const isThere = !isRefused && readRecord(home, key)?.pid === record.pid && isAlive(record.pid);
    return isThere ? { socket, reply: undefined, isHungUp: true } : undefined;
  }
  socket.removeAllListeners("close");
  return { socket, reply: reply === "silent" ? undefined : reply };
}

/** Hands over the first line, and leaves the rest unread in the stream; undefined when it is too long to be ours. */
export function readFirstLine(socket: Socket, onLine: (line: Buffer | undefined, all: Buffer) => void): void {
  let read: Buffer = Buffer.alloc(0);
  const onData = (chunk: Buffer) => {
    read = read.length === 0 ? chunk : Buffer.concat([read, chunk]);
    const end = read.indexOf(0x0a);
    if (end === -1 && read.length <= maxReplyBytes) return;
    socket.off("data", onData);
    socket.pause();
    const line = end === -1 ? undefined : read.subarray(0, end);
    const rest = end === -1 ? read : read.subarray(end + 1);
    if (rest.length > 0) socket.unshift(rest);
    onLine(line, read);
  };
  socket.on("data", onData);
}

/**
 * Of many who find no daemon, one starts it and the others look again; a lock in the daemon itself makes sure that only
 * one stays.
 */
async function startOrWait(address: DaemonAddress, known: DaemonRecord | undefined): Promise<void> {
  const { home, key } = address;
  refuseGone(home, address.isHomeKnown);
  prepareHome(home);
  const turn = path.join(home.runFolder, `${key}.starting`);
  if (!takeTurn(turn)) return await sleep(systemClock, lookAgainMs);
  try {
    // Whoever had the turn before us may have started one since we looked.
    if (readRecord(home, key)?.pid === known?.pid) await startDaemon(address);
  } finally {
    rmSync(turn, { force: true });
  }
}

/** The home and what is in it are this user's alone, also where the folder was made by somebody less careful. */
function prepareHome(home: Home): void {
  try {
    ensureHome(home);
    ensurePrivateFolder(home.runFolder);
  } catch (error) {
    if (error instanceof RuntimeError) throw error;
    throw new DaemonUnreachable(
      `Cannot use the home folder ${home.folder}: ${(error as Error).message}; set MEANWHILE_HOME to a folder of your own.`,
      {
        forClients: "The home folder cannot be used; whoever runs this server finds the reason on its stderr.",
      },
    );
  }
}

function takeTurn(file: string): boolean {
  try {
    writeFileSync(file, String(process.pid), { flag: "wx", mode: 0o600 });
    return true;
  } catch {
    const since = statSync(file, { throwIfNoEntry: false })?.mtimeMs;
    const pid = readPid(file);
    const isStale =
      (since !== undefined && systemClock.now() - since > staleStartMs) || (pid !== undefined && !isAlive(pid));
    if (isStale) rmSync(file, { force: true });
    return false;
  }
}

/** Undefined while it is being written. */
function readPid(file: string): number | undefined {
  try {
    return Number(readFileSync(file, "utf8")) || undefined;
  } catch {
    return undefined;
  }
}

export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0) && !isZombie(pid);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}

/** It has ended, and whoever started it has not asked about it: a front that is suspended never does. */
function isZombie(pid: number): boolean {
  try {
    // Its first thread is one as soon as it is told to end; what it has open is closed by the last.
    return /\) Z /.test(readFileSync(`/proc/${pid}/stat`, "latin1")) && readdirSync(`/proc/${pid}/task`).length === 1;
  } catch {
    return false;
  }
}

/** Starts the daemon in a session of its own and resolves when it listens, or another does. */
async function startDaemon(address: DaemonAddress): Promise<void> {
  const {
    home,
    command: [program, ...words],
    env,
    cwd,
  } = address;
  refuseGone(home, address.isHomeKnown);
  prepareHome(home);
  const log = openLogFile(home.daemonLog);
  const child = spawn(program, words, { detached: true, cwd, env, stdio: ["ignore", log, log, "pipe"] });
  closeSync(log);
  child.unref();
  const report = child.stdio[3] as Readable & { unref(): void };
  const said = await new Promise<string>((resolve) => {
    let text = "";
    const cancelLimit = systemClock.after(startLimitMs, () => resolve("late"));
    const end = (word = text) => {
      cancelLimit();
      resolve(word);
    };
    report.on("data", (chunk: Buffer) => (text += chunk.toString("utf8")));
    report.on("error", () => end());
    report.on("close", () => end());
    child.on("error", (error) => end(`failed ${error.message}`));
  });
  report.destroy();
  if (said.startsWith("failed ")) throw new DaemonUnreachable(said.slice("failed ".length).trim());
  if (said.startsWith("another ")) throw new KeyOutdated(JSON.parse(said.slice("another ".length)) as string[]);
  if (said === "late") {
    child.kill("SIGKILL");
    const what = `The daemon has not started within ${startLimitMs / 1000} s`;
    throw new DaemonUnreachable(`${what}; see ${home.daemonLog}, or serve with --in-process.`, {
      forClients: `${what}; its log says why.`,
    });
  }
  if (said === "") {
    const what = "The daemon ended while it started";
    throw new DaemonUnreachable(`${what}; see ${home.daemonLog}.`, { forClients: `${what}; its log says why.` });
  }
}

/** The daemon itself puts aside what is too long. */
function openLogFile(file: string): number {
  // A link would have us write where somebody else wants it.
  try {
    return openSync(file, constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW, 0o600);
  } catch (error) {
    throw new DaemonUnreachable(whyNoLog(file, error as NodeJS.ErrnoException), {
      forClients: "The daemon's log cannot be written; whoever runs this server finds the reason on its stderr.",
    });
  }
}

/** Throws when no daemon could be started in this home: before the one that runs is told to stop. */
export function refuseUnwritable(home: Home): void {
  prepareHome(home);
  closeSync(openLogFile(home.daemonLog));
}

/** Only what is in the way of the log has to be removed; everything else is true of the whole home. */
function whyNoLog(file: string, { code = "", message }: NodeJS.ErrnoException): string {
  const elsewhere = "or set MEANWHILE_HOME to a folder that you may write";
  if (code === "EROFS")
    return `The log ${file} may not be written, because its file system is mounted read-only; mount it writable, ${elsewhere}.`;
  if (code === "EACCES" || code === "EPERM")
    return `The log ${file} may not be written; change its mode and that of its folder (chmod u+w), ${elsewhere}.`;
  if (code === "ENOSPC" || code === "EDQUOT")
    return `The log ${file} cannot be written, because the disk is full; make room, ${elsewhere}.`;
  if (code === "EMFILE" || code === "ENFILE") return `The log ${file} cannot be opened: ${outOfDescriptors}.`;
  return `The log ${file} cannot be written: ${message}; remove what is there.`;
}
