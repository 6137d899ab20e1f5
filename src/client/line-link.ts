import { type ChildProcessByStdio, spawn } from "node:child_process";
import { connect as connectSocket } from "node:net";
import runtime, { env, kill, platform } from "node:process";
import type { Readable, Writable } from "node:stream";
import { systemClock } from "../clock.ts";
import { LineSplitter } from "../wire/lines.ts";
import { type Message, readMessage, writeMessage } from "../wire/message.ts";
import type { CommandTarget, SocketTarget } from "./client.ts";
import { ConnectionError } from "./errors.ts";
import { type Link, type LinkEvents, maxMessageBytes, tooLarge } from "./link.ts";
import { cut } from "./message.ts";

/** One message a line: over the pipes of a server that is started here, or over a socket. */

const patienceMs = 2_000;

/** Starts a server. It ends with the link: its input is closed, and what does not leave by itself is made to. */
export async function startServer(target: CommandTarget, events: LinkEvents, onStderr?: (text: string) => void): Promise<Link> {
  const child = spawn(target.command, [...(target.args ?? [])], {
    stdio: ["pipe", "pipe", "pipe"],
    env: { ...env, ...target.env },
    // In a group of its own: Ctrl-C in a terminal is for whoever calls, who decides what it means for the server.
    detached: platform !== "win32",
    ...(target.cwd !== undefined && { cwd: target.cwd }),
  });
  await started(child, target.command);
  const release = endWithUs(child);
  let lastWords = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    lastWords = (lastWords + text).slice(-2_000);
    onStderr?.(text);
  });
  const exited = new Promise<void>((resolve) =>
    child.on("close", (code, signal) => {
      release();
      resolve();
      const how = code === null ? `was ended by ${signal}` : `ended with exit code ${code}`;
      const words = cut(lastWords.trim().split("\n").at(-1) ?? "");
      const sentence = `The server ${cut(target.command, 100)} ${how}${words === "" ? "." : `; its last words: «${words}».`}`;
      finish(new ConnectionError(sentence, { isPassing: false, lastWords }));
    }),
  );
  const finish = readLines(child.stdout, events);
  return {
    kind: "command",
    // A server that takes nothing any more has mostly left, and its end says why.
    send: (message) => writeLine(child.stdin, message).catch((error: unknown) => orLate(exited).then(() => Promise.reject(error))),
    begin: async () => undefined,
    close: () => endProcess(child, exited),
  };
}

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

function started(child: Child, command: string): Promise<void> {
  child.stdin.on("error", () => undefined); // A server that is gone says so by its exit.
  return new Promise((resolve, reject) => {
    child.once("spawn", resolve);
    child.once("error", (cause: NodeJS.ErrnoException) => {
      const why = cause.code === "ENOENT" ? "there is no such command or working folder" : cause.message;
      reject(new ConnectionError(`The server ${cut(command, 100)} cannot be started: ${why}.`, { isPassing: false, isUnsent: true, cause }));
    });
  });
}

/** The servers that run now. Whatever ends this process, they are not left behind. */
const running = new Set<Child>();

function endWithUs(child: Child): () => void {
  if (running.size === 0) runtime.on("exit", killAll);
  running.add(child);
  return () => {
    running.delete(child);
    if (running.size === 0) runtime.off("exit", killAll);
  };
}

function killAll(): void {
  for (const child of running) killGroup(child);
}

/** With all that it has started and that has not gone its own way. */
function killGroup(child: Child): void {
  try {
    if (platform !== "win32" && child.pid !== undefined) kill(-child.pid, "SIGKILL");
  } catch {
    // It is gone.
  }
  child.kill("SIGKILL");
}

async function endProcess(child: Child, exited: Promise<void>): Promise<void> {
  child.stdin.end();
  if (await orLate(exited)) return;
  child.kill("SIGTERM");
  if (await orLate(exited)) return;
  killGroup(child);
  // What it has started itself may hold its pipes; those are not ours to wait for.
  for (const stream of [child.stdout, child.stderr]) stream.destroy();
  await exited;
}

/** True when it comes to its end in good time. */
async function orLate(end: Promise<void>): Promise<boolean> {
  const late = Promise.withResolvers<boolean>();
  const stopClock = systemClock.after(patienceMs, () => late.resolve(false));
  const isOver = await Promise.race([end.then(() => true), late.promise]);
  stopClock();
  return isOver;
}

/** Connects to a socket that takes one message a line. */
export async function connectLines({ socket: path }: SocketTarget, events: LinkEvents): Promise<Link> {
  const socket = connectSocket(path);
  await new Promise<void>((resolve, reject) => {
    socket.once("connect", resolve);
    socket.once("error", (cause: NodeJS.ErrnoException) => {
      const isAbsent = cause.code === "ENOENT" || cause.code === "ECONNREFUSED";
      const why = isAbsent ? `Nothing listens on ${path}.` : `The socket ${path} cannot be used: ${cause.message}.`;
      reject(new ConnectionError(why, { isUnsent: true, cause }));
    });
  });
  const finish = readLines(socket, events);
  const closed = new Promise<void>((resolve) =>
    socket.on("close", () => {
      resolve();
      finish(new ConnectionError(`The server on ${path} closed the connection.`));
    }),
  );
  socket.on("error", () => undefined); // `close` follows.
  return {
    kind: "socket",
    send: (message) => writeLine(socket, message),
    begin: async () => undefined,
    async close() {
      socket.end();
      socket.destroySoon();
      await closed;
    },
  };
}

/** Reads messages until the returned function is called, with why. */
function readLines(input: Readable, events: LinkEvents): (why: ConnectionError) => void {
  const splitter = new LineSplitter(maxMessageBytes);
  let isOver = false;
  let unended = 0;
  const finish = (why: ConnectionError) => {
    if (isOver) return;
    isOver = true;
    events.onClose(why);
  };
  input.on("data", (chunk: Buffer) => {
    for (const line of splitter.push(chunk)) {
      if (isOver) return;
      if (line === "tooLong") return finish(new ConnectionError(tooLarge, { isPassing: false }));
      const message = readMessage(line.toString("utf8"));
      if (message !== undefined) events.onMessage(message);
    }
    // A line that never ends would be waited for as long.
    const newline = chunk.lastIndexOf(0x0a);
    unended = newline === -1 ? unended + chunk.length : chunk.length - newline - 1;
    if (unended > maxMessageBytes) finish(new ConnectionError(tooLarge, { isPassing: false }));
  });
  input.on("error", () => undefined);
  return finish;
}

function writeLine(output: Writable, message: Message): Promise<void> {
  return new Promise((resolve, reject) => {
    if (!output.writable) return reject(new ConnectionError("The connection to the server is closed.", { isUnsent: true }));
    output.write(`${writeMessage(message)}\n`, (cause) => {
      if (cause == null) resolve();
      else reject(new ConnectionError(`The server does not take messages any more: ${cause.message}.`, { cause }));
    });
  });
}
