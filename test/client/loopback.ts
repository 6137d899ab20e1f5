import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { onTestFinished } from "vitest";

/** Servers that are written by hand, in this process: what a real one would not do on request, they do. */

// biome-ignore lint/suspicious/noExplicitAny: what is in a message is checked by the tests.
type Fields = Record<string, any>;

export interface Received {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** The message that was posted; empty for other methods. */
  readonly message: { readonly id?: number; readonly method?: string; readonly params?: Fields };
}

/** An HTTP server on a free port that is gone after the test. */
export async function serveLoopback(
  handle: (received: Received) => void | Promise<void>,
): Promise<{ url: string; origin: string }> {
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const part of request) text += String(part);
    await handle({ request, response, message: text === "" ? {} : JSON.parse(text) });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(async () => {
    const closed = new Promise((resolve) => server.close(resolve));
    server.closeAllConnections();
    await closed;
  });
  const origin = `http://127.0.0.1:${(server.address() as { port: number }).port}`;
  return { url: `${origin}/mcp`, origin };
}

export function answer({ response, message }: Received, result: Fields): void {
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify({ jsonrpc: "2.0", id: message.id, result }));
}

export function refuse(
  { response, message }: Received,
  status: number,
  error: { code: number; message: string; data?: unknown },
): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify({ jsonrpc: "2.0", id: message.id ?? null, error }));
}

/** What a server of 2026-07-28 with tasks says of itself. */
export const discovered = {
  resultType: "complete",
  supportedVersions: ["2026-07-28"],
  capabilities: { tools: {}, extensions: { "io.modelcontextprotocol/tasks": {} } },
  ttlMs: 0,
  cacheScope: "private",
  _meta: { "io.modelcontextprotocol/serverInfo": { name: "by-hand", version: "1" } },
};

export const text = (words: string) => ({ resultType: "complete", content: [{ type: "text", text: words }] });

/** A server of 2026-07-28: these methods, and nothing else. */
export function modern(
  methods: Readonly<Record<string, (received: Received) => void | Promise<void>>>,
): (received: Received) => Promise<void> {
  return async (received) => {
    const { method = "" } = received.message;
    if (methods[method] !== undefined) await methods[method](received);
    else if (method === "server/discover") answer(received, discovered);
    else refuse(received, 404, { code: -32601, message: "Method not found" });
  };
}

/** Sessions of 2025-11-25, by hand. */
export function legacy(
  methods: Readonly<Record<string, (received: Received) => void>> = {},
  first: (received: Received) => void = ({ response }) => void response.writeHead(400).end(),
) {
  const seen: string[] = [];
  let sessions = 0;
  const handle = (received: Received) => {
    const { method = "" } = received.message;
    seen.push(method === "" ? (received.request.method ?? "") : method);
    if (received.request.method === "GET" || received.request.method === "DELETE")
      received.response.writeHead(405).end();
    else if (methods[method] !== undefined) methods[method](received);
    else if (method === "server/discover") first(received);
    else if (method === "initialize") {
      received.response.setHeader("mcp-session-id", `s${++sessions}`);
      const capabilities = { tools: {}, tasks: { requests: { tools: { call: {} } } } };
      answer(received, { protocolVersion: "2025-11-25", capabilities, serverInfo: { name: "sessions", version: "1" } });
    } else if (method.startsWith("notifications/")) received.response.writeHead(202).end();
    else refuse(received, 404, { code: -32601, message: "Method not found" });
  };
  return { handle, seen, sessions: () => sessions };
}
