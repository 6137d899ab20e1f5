import type { IncomingMessage } from "node:http";
import { RequestError, RpcCode } from "../../errors.ts";
import { maxBodyBytes, weighParsed } from "../../wire/frames.ts";
import { isObject } from "../../wire/json.ts";
import { HttpRefusal } from "./http-refusal.ts";

/** A client that is still sending reads no answer, so what is too large is read on, up to here, and dropped. */
const maxDroppedBytes = 16 * maxBodyBytes;
const smallBytes = 64 * 1024;
const empty = Buffer.alloc(0);

/** Of a request whose body an app has parsed before us. */
export class ParsedBody {
  readonly value: unknown;
  /** About as many bytes as its text had. */
  readonly length: number;

  constructor(value: unknown) {
    this.value = value;
    this.length = weighParsed(value);
  }
}

export interface BodyListener {
  /** So many bytes more are kept; throws when they must not be. */
  onGrowth(bytes: number): void;
  onBody(body: Buffer | ParsedBody): void;
  onError(error: unknown): void;
}

/** Calls one of the last two, once; neither when the client hangs up. */
export function readBody(request: IncomingMessage, { onGrowth, onBody, onError }: BodyListener): void {
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

function tooLarge(): RequestError {
  return new RequestError("tooLarge", `The body is larger than ${maxBodyBytes / 1024 / 1024} MiB.`);
}

/** What an app has made of the body: text, bytes, or whatever JSON holds. */
export function takeBody(given: unknown, { onGrowth, onBody, onError }: BodyListener): void {
  try {
    const body = toBody(given);
    if (body.length > maxBodyBytes) throw tooLarge();
    onGrowth(body.length);
    onBody(body);
  } catch (error) {
    onError(error);
  }
}

function toBody(given: unknown): Buffer | ParsedBody {
  if (typeof given === "string") return Buffer.from(given);
  if (given instanceof Uint8Array) return Buffer.from(given.buffer, given.byteOffset, given.byteLength);
  return new ParsedBody(given);
}

/** The same of a web Request; that its client leaves is somebody else's to notice. */
export function readWebBody(request: Request, listener: BodyListener): void {
  if (request.bodyUsed) return void listener.onError(readAlready("`fetch(request, { body })`"));
  const length = Number(request.headers.get("content-length") ?? Number.NaN);
  if (length > maxDroppedBytes) return void listener.onError(tooLarge());
  // A small one is read in one go: where node is behind it, a stream would be made of it for us alone.
  const isSmall = length <= smallBytes && request.headers.get("content-encoding") === null;
  const read = isSmall
    ? request.arrayBuffer().then((bytes) => takeBody(new Uint8Array(bytes), listener))
    : readParts(request, listener);
  read.catch(() => listener.onError(new HttpRefusal(400, "The body could not be read to its end.")));
}

async function readParts({ body: parts }: Request, { onGrowth, onBody, onError }: BodyListener): Promise<void> {
  let body: Buffer = empty;
  let size = 0;
  let isRefused = false;
  const reader = (parts as ReadableStream<Uint8Array> | null)?.getReader();
  for (let next = await reader?.read(); next?.done === false; next = await reader?.read()) {
    const part = next.value;
    const isKept = !isRefused && size + part.length <= maxBodyBytes;
    const kept = isKept ? append(body, size, Buffer.from(part.buffer, part.byteOffset, part.byteLength)) : empty;
    size += part.length;
    if (size > maxDroppedBytes) {
      reader?.cancel().catch(() => undefined);
      break;
    }
    try {
      if (kept.length > body.length) onGrowth(kept.length - body.length);
      body = kept;
    } catch (error) {
      isRefused = true;
      onError(error);
    }
  }
  if (isRefused) return;
  if (size > maxBodyBytes) onError(tooLarge());
  else onBody(body.subarray(0, size));
}

/** Somebody before us has taken the body away. */
function readAlready(cure: string): HttpRefusal {
  const text = `The app has read the body already; it has to hand over what it made of it: ${cure}.`;
  return new HttpRefusal(500, text, { code: RpcCode.Internal });
}

/**
 * The body of a request that an app has had before us: what it hands over, what a parser has left on the request, or
 * what is still to be read.
 */
export function readNodeBody(request: IncomingMessage, given: unknown, listener: BodyListener): void {
  const body = given === undefined && "body" in request ? request.body : given;
  const isRead = request.readableDidRead || request.readableEnded;
  // A parser that does not feel addressed leaves an object without anything in it.
  const isMade = isRead ? body !== undefined : body != null && !(isObject(body) && Object.keys(body).length === 0);
  if (isMade) takeBody(body, listener);
  else if (isRead) listener.onError(readAlready("`node(request, response, body)`"));
  else readBody(request, listener);
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
