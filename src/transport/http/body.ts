import type { IncomingMessage } from "node:http";
import { RequestError, RpcCode } from "../../errors.ts";
import { maxBodyBytes, weighParsed } from "../../wire/frames.ts";
import { excerptOf, isObject } from "../../wire/json.ts";
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

/**
 * Throws a 415 refusal for a body that declares a content coding or a charset that we do not decode. Only `identity`
 * and UTF-8 (with its subset US-ASCII) are read.
 */
function refuseUndecodable({ encoding, type }: { readonly encoding: string; readonly type: string }): void {
  const coding = encoding.split(",").find((name) => !["", "identity"].includes(name.trim().toLowerCase()));
  if (coding !== undefined) throw undecodable(coding.trim());
  refuseCharset(type);
}

function undecodable(coding: string): HttpRefusal {
  const text = `Content-Encoding "${excerptOf(coding)}" is not decoded; send the body as it is.`;
  return new HttpRefusal(415, text, { headers: { "accept-encoding": "identity" } });
}

function refuseCharset(type: string): void {
  if (!type.includes(";")) return;
  for (const [, charset = ""] of type.matchAll(/;\s*charset\s*=\s*"?([^";\s]+)/gi))
    if (!["utf-8", "utf8", "us-ascii"].includes(charset.toLowerCase()))
      throw new HttpRefusal(415, `The charset "${excerptOf(charset)}" is not decoded; send UTF-8.`);
}

/** Calls one of the last two, once; neither when the client hangs up. */
export function readBody(request: IncomingMessage, { onGrowth, onBody, onError }: BodyListener): void {
  const { "content-encoding": encoding = "", "content-type": type = "" } = request.headers;
  try {
    refuseUndecodable({ encoding, type });
  } catch (error) {
    return void onError(error);
  }
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

/**
 * Reads the body of a web Request. Does not notice that the client disconnects. A platform may have decompressed the
 * body and left the header: a body that begins as JSON was decompressed.
 */
export function readWebBody(request: Request, listener: BodyListener): void {
  if (request.bodyUsed) return void listener.onError(readAlready("`fetch(request, { body })`"));
  const encoding = request.headers.get("content-encoding") ?? "";
  try {
    refuseCharset(request.headers.get("content-type") ?? "");
  } catch (error) {
    return void listener.onError(error);
  }
  readWeb(
    request,
    encoding === "" ? listener : { ...listener, onBody: (body) => takeDecoded(body, encoding, listener) },
  );
}

function takeDecoded(body: Buffer | ParsedBody, encoding: string, { onBody, onError }: BodyListener): void {
  const isJson = body instanceof ParsedBody || /^\s*[[{]/.test(body.toString("latin1", 0, 1_000));
  try {
    if (!isJson) refuseUndecodable({ encoding, type: "" });
  } catch (error) {
    return void onError(error);
  }
  onBody(body);
}

function readWeb(request: Request, listener: BodyListener): void {
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
