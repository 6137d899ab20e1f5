import type { ServerResponse } from "node:http";
import type { Clock } from "../clock.ts";

/** Writes an answer: whole where it is JSON, as it comes where it is a stream. */
export async function writeResponse(to: ServerResponse, from: Response, clock: Clock): Promise<void> {
  const headers: Record<string, string> = Object.fromEntries(from.headers);
  if (from.body === null) {
    to.writeHead(from.status, headers).end();
  } else if (headers["content-type"]?.startsWith("application/json")) {
    const body = Buffer.from(await from.arrayBuffer());
    to.writeHead(from.status, { ...headers, "content-length": String(body.length) }).end(body);
  } else {
    to.writeHead(from.status, headers);
    to.flushHeaders();
    await stream(to, from.body, clock);
  }
}

/** A client that leaves this much unread for this long, or so much at once, is closed: whoever writes to it does not wait. */
const unread = { bytes: 1024 * 1024, ms: 10_000, mostBytes: 16 * 1024 * 1024 };

/** Copies a stream until the client is gone, or does not read. */
async function stream(to: ServerResponse, body: ReadableStream<Uint8Array>, clock: Clock): Promise<void> {
  const reader = body.getReader();
  const onClose = () => void reader.cancel().catch(() => undefined);
  to.on("close", onClose);
  let behindSince: number | undefined;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done || to.destroyed) break;
      behindSince = to.writableLength > unread.bytes ? (behindSince ?? clock.monotonic()) : undefined;
      const isStuck = behindSince !== undefined && clock.monotonic() - behindSince > unread.ms;
      if (isStuck || to.writableLength > unread.mostBytes) {
        to.destroy();
        return onClose();
      }
      to.write(value);
    }
  } finally {
    to.off("close", onClose);
    to.end();
  }
}
