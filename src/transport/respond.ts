import type { ServerResponse } from "node:http";
import type { Clock } from "../clock.ts";
import { partBytes, unread } from "./limits.ts";
import { PartWriter } from "./part-writer.ts";

/** Writes an answer: whole where it is JSON, as it comes where it is a stream. */
export async function writeResponse(to: ServerResponse, from: Response, clock: Clock): Promise<void> {
  const headers: Record<string, string> = Object.fromEntries(from.headers);
  if (from.body === null) {
    to.writeHead(from.status, headers).end();
  } else if (headers["content-type"]?.startsWith("application/json")) {
    const body = Buffer.from(await from.arrayBuffer());
    to.writeHead(from.status, { ...headers, "content-length": String(body.length) });
    if (body.length <= partBytes) return void to.end(body);
    const writer = new PartWriter(to, clock);
    writer.write(body);
    await writer.end();
  } else {
    to.writeHead(from.status, headers);
    to.flushHeaders();
    await stream(to, from.body, clock);
  }
}

/** Copies a stream until the client is gone, or does not read: whoever writes to it does not wait. */
async function stream(to: ServerResponse, body: ReadableStream<Uint8Array>, clock: Clock): Promise<void> {
  const reader = body.getReader();
  const writer = new PartWriter(to, clock);
  const onClose = () => void reader.cancel().catch(() => undefined);
  to.on("close", onClose);
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done || to.destroyed) break;
      if (writer.waitingBytes > unread.mostBytes) {
        to.destroy();
        return onClose();
      }
      writer.write(value);
    }
    await writer.end();
  } finally {
    to.off("close", onClose);
    to.end();
  }
}
