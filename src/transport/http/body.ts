import type { IncomingMessage } from "node:http";
import { RequestError } from "../../errors.ts";
import { maxBodyBytes } from "../../wire/frames.ts";

/** A client that is still sending reads no answer, so what is too large is read on, up to here, and dropped. */
const maxDroppedBytes = 16 * maxBodyBytes;
const empty = Buffer.alloc(0);

export interface BodyListener {
  /** So many bytes more are kept; throws when they must not be. */
  onGrowth(bytes: number): void;
  onBody(body: Buffer): void;
  onError(error: unknown): void;
}

/** Calls one of the last two, once; neither when the client hangs up. */
export function readBody(request: IncomingMessage, { onGrowth, onBody, onError }: BodyListener): void {
  const tooLarge = () => new RequestError("tooLarge", `The body is larger than ${maxBodyBytes / 1024 / 1024} MiB.`);
  if (Number(request.headers["content-length"] ?? 0) > maxDroppedBytes) return void onError(tooLarge());
  let body: Buffer = empty;
  let size = 0;
  const refuse = (error: unknown) => {
    request.removeAllListeners("data").removeAllListeners("end").resume();
    body = empty;
    onError(error);
  };
  request.on("data", (part: Buffer) => {
    const isKept = size + part.length <= maxBodyBytes;
    const kept = isKept ? append(body, size, part) : empty;
    size += part.length;
    if (size > maxDroppedBytes) return void refuse(tooLarge());
    try {
      if (kept.length > body.length) onGrowth(kept.length - body.length);
      body = kept;
    } catch (error) {
      refuse(error);
    }
  });
  request.on("end", () => {
    if (size > maxBodyBytes) onError(tooLarge());
    else onBody(body.subarray(0, size));
  });
}

/**
 * The first part is taken as it is. More are copied into room that doubles: who sends byte by byte has no object kept
 * for each.
 */
function append(body: Buffer, size: number, part: Buffer): Buffer {
  if (size === 0) return part;
  const whole = size + part.length <= body.length ? body : Buffer.allocUnsafe(2 * (size + part.length));
  if (whole !== body) body.copy(whole, 0, 0, size);
  part.copy(whole, size);
  return whole;
}
