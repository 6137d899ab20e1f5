import { once } from "node:events";
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { cleanUp } from "./home.ts";

/** A proxy that knows nothing of MCP. */
export interface RoundRobin {
  readonly url: string;
  /** The servers it sends requests to, in turn; may be changed. */
  readonly urls: string[];
  /** Where each request went, in order. */
  readonly sent: readonly { readonly url: string; readonly method: string }[];
}

/** Sends every request to the next server, and what that answers back as it comes. Whom it cannot reach it passes over. */
export async function startRoundRobin(urls: readonly string[]): Promise<RoundRobin> {
  const all = [...urls];
  const sent: { url: string; method: string }[] = [];
  let turn = 0;
  const forward = async (incoming: IncomingMessage, response: ServerResponse) => {
    const body = await buffer(incoming);
    for (let tries = 0; tries < all.length; tries++) {
      const url = all[turn++ % all.length] as string;
      const about = { method: incoming.method, headers: incoming.headers, agent: false };
      const upstream = request(url, about).end(body);
      // Who hangs up hangs up on the server, be it before that has said a word.
      response.once("close", () => upstream.destroy());
      const answer = await once(upstream, "response").then(
        ([head]) => head as IncomingMessage,
        (error: NodeJS.ErrnoException) => error,
      );
      if (answer instanceof Error && answer.code === "ECONNREFUSED") continue;
      sent.push({ url, method: incoming.method ?? "" });
      if (answer instanceof Error) return void response.destroy();
      answer.on("error", () => response.destroy());
      response.writeHead(answer.statusCode ?? 502, answer.headers).flushHeaders();
      return void answer.pipe(response);
    }
    response.writeHead(502).end();
  };
  const server = createServer((incoming, response) => void forward(incoming, response)).listen(0, "127.0.0.1");
  await once(server, "listening");
  cleanUp(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`, urls: all, sent };
}
