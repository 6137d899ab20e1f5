import { connect as connectSocket } from "node:net";
import { env } from "node:process";
import { systemClock, within } from "../../clock.ts";
import { endChild, startChild } from "../../wire/child.ts";
import { endWithUs } from "../../wire/end-with-us.ts";
import { failureLine } from "../../wire/failure-line.ts";
import { readLines, writeLine } from "../../wire/line-link.ts";
import type { Link, LinkEvents } from "../../wire/peer.ts";
import { ConnectionError, cut } from "../../wire/peer-errors.ts";
import type { CommandTarget, SocketTarget } from "../client.ts";

/** Links with one message a line: to a server that is started here, over its pipes, or to a socket. */

const patienceMs = 2_000;

/** Starts a server. Closing the link ends the server: first its stdin is closed, then it gets signals. */
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
      const words = cut(failureLine(lastWords));
      const sentence = `The server ${cut(command, 100)} ${how}${words === "" ? "." : `; it printed «${words}».`}`;
      finish(new ConnectionError(sentence, { isPassing: false, lastWords }));
    }),
  );
  return {
    kind: "command",
    // A failed write usually means that the server has ended. Its exit code and stderr tell more than the write error.
    send: (message) =>
      writeLine(child.stdin, message).catch((error: unknown) =>
        within(systemClock, patienceMs, exited).then(() => Promise.reject(error)),
      ),
    begin: async () => undefined,
    close: async () => void (await endChild(child, { gone: exited, politeMs: patienceMs, signalMs: patienceMs })),
  };
}

/** How an HTTP server answers a line that is no request. */
const httpStart = "HTTP/1.";

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
  let isHttp = false;
  socket.once("data", (chunk: Buffer) => {
    isHttp = chunk.toString("latin1", 0, httpStart.length) === httpStart;
  });
  const finish = readLines(socket, events);
  const closed = new Promise<void>((resolve) =>
    socket.on("close", () => {
      resolve();
      const overHttp = `The server on ${path} speaks HTTP, and a socket target takes one message a line. For HTTP on a socket use curl --unix-socket.`;
      finish(
        isHttp
          ? new ConnectionError(overHttp, { isPassing: false })
          : new ConnectionError(`The server on ${path} closed the connection.`),
      );
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
