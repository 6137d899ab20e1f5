import { createServer, type Socket } from "node:net";
import path from "node:path";
import { readLines } from "../../src/wire/line-link.ts";
import { cleanUp, temporaryFolder } from "./home.ts";
import { waitFor } from "./wait-for.ts";
import type { Message } from "./wire.ts";

/** A server in the test's process that takes one message a line on a Unix socket. */
export interface LineServer {
  /** For `meanwhile call`. */
  readonly target: string;
  /** Resolves when a message with this method has arrived. */
  has(method: string): Promise<void>;
  /** How many messages with this method have arrived. */
  count(method: string): number;
}

/** What the server does with a request: it sends a result or an error, or closes the connection, or sends nothing. */
export type Answering = (message: Message) => Pick<Message, "result" | "error"> | "close" | undefined;

export async function serveLines(answer: Answering): Promise<LineServer> {
  const methods: (string | undefined)[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    const onMessage = (message: Message) => {
      methods.push(message.method);
      const answered = answer(message);
      if (answered === "close") socket.destroy();
      else if (answered !== undefined && message.id !== undefined)
        socket.write(`${JSON.stringify({ jsonrpc: "2.0", id: message.id, ...answered })}\n`);
    };
    readLines(socket, { onMessage: (message) => onMessage(message as Message), onClose: () => {} });
  });
  const file = path.join(temporaryFolder(), "s.sock");
  await new Promise<void>((resolve) => server.listen(file, resolve));
  cleanUp(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const count = (method: string) => methods.filter((one) => one === method).length;
  return {
    target: `unix:${file}`,
    count,
    has: async (method) => {
      await waitFor(
        () => count(method) > 0,
        () => `no ${method} in ${methods.join(", ")}`,
      );
    },
  };
}

export const methodNotFound = { error: { code: -32601, message: "Method not found" } };
