import { connect as connectSocket } from "node:net";
import { env } from "node:process";
import { systemClock, within } from "../../clock.ts";
import { endChild, startChild } from "../../wire/child.ts";
import { endWithUs } from "../../wire/end-with-us.ts";
import { readLines, writeLine } from "../../wire/line-link.ts";
import type { Link, LinkEvents } from "../../wire/peer.ts";
import { ConnectionError, cut } from "../../wire/peer-errors.ts";
import type { CommandTarget, SocketTarget } from "../client.ts";

/** One message a line: over the pipes of a server that is started here, or over a socket. */

const patienceMs = 2_000;

/** Starts a server. It ends with the link: its input is closed, and what does not leave by itself is made to. */
export async function startServer(
  target: CommandTarget,
  events: LinkEvents,
  onStderr?: (text: string) => void,
): Promise<Link> {
  const { command, args = [], cwd } = target;
  const child = await startChild({ command, args, cwd, env: { ...env, ...target.env } });
  const release = endWithUs(child);
  let lastWords = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    lastWords = (lastWords + text).slice(-2_000);
    onStderr?.(text);
  });
  const finish = readLines(child.stdout, events);
  const exited = new Promise<void>((resolve) =>
    child.on("close", (code, signal) => {
      release();
      resolve();
      const how = code === null ? `was ended by ${signal}` : `ended with exit code ${code}`;
      const words = cut(lastWords.trim().split("\n").at(-1) ?? "");
      const sentence = `The server ${cut(command, 100)} ${how}${words === "" ? "." : `; its last words: «${words}».`}`;
      finish(new ConnectionError(sentence, { isPassing: false, lastWords }));
    }),
  );
  return {
    kind: "command",
    // A server that takes nothing any more has mostly left, and its end says why.
    send: (message) =>
      writeLine(child.stdin, message).catch((error: unknown) =>
        within(systemClock, patienceMs, exited).then(() => Promise.reject(error)),
      ),
    begin: async () => undefined,
    close: async () => void (await endChild(child, { gone: exited, politeMs: patienceMs, signalMs: patienceMs })),
  };
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
