import http, { type IncomingMessage, type RequestOptions } from "node:http";
import https from "node:https";
import type { Json } from "./json.ts";
import { routingHeaders } from "./request-envelope.ts";
import { hasVersionHeader, isModern } from "./revisions.ts";
import { EventReader, type ServerEvent } from "./sse.ts";

/**
 * One HTTP exchange of a client's, of every revision: what it says in its headers, and what comes back as JSON or on a
 * stream. `fetch` gives up after five silent minutes, which is what slow tools are, and hides why it failed; node's own
 * `request` does neither.
 */

export interface HttpRequest extends Pick<RequestOptions, "lookup" | "maxHeaderSize"> {
  readonly method: "POST" | "GET" | "DELETE" | "OPTIONS" | "PUT" | "HEAD";
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Undefined: a connection of its own. */
  readonly agent?: http.Agent | undefined;
}

/** How long a connection may be silent before the other side is asked whether it is still there. */
const probeMs = 60_000;

/**
 * Sends a request and resolves with the head of its answer, whatever it is; rejects with what the network said, or with
 * the signal's reason.
 */
export function sendHttp(url: URL, { body, signal, agent, headers, ...rest }: HttpRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const { request } = url.protocol === "https:" ? https : http;
    const length = body === undefined ? {} : { "content-length": String(Buffer.byteLength(body)) };
    let incoming: IncomingMessage | undefined;
    const outgoing = request(
      url,
      { ...rest, headers: { ...headers, ...length }, agent: agent ?? false },
      (response) => {
        incoming = response;
        resolve(response);
      },
    );
    // By hand, because node's own `signal` raises an error on the socket that nobody can catch once the answer is being
    // read.
    const onAbort = () => void (incoming === undefined ? outgoing.destroy(new Error("aborted")) : incoming.destroy());
    signal?.addEventListener("abort", onAbort, { once: true });
    // Who is gone without a word is noticed, be it after minutes: an answer may take hours.
    outgoing.on("socket", (socket) => socket.setKeepAlive(true, probeMs));
    outgoing.on("close", () => signal?.removeEventListener("abort", onAbort));
    outgoing.on("error", (cause) => reject(signal?.aborted ? signal.reason : cause));
    outgoing.end(body);
  });
}

/** What a client takes as an answer. */
export const acceptBoth = { accept: "application/json, text/event-stream" } as const;

export interface HttpSubject {
  /** Undefined while none is agreed on. */
  readonly revision: string | undefined;
  readonly session: string | undefined;
  /** Undefined for an answer, and for what is no message. */
  readonly method?: string | undefined;
  readonly params?: Json | undefined;
}

/**
 * What the headers say of a message: the session it belongs to, its revision, and since 2026-07-28 what it is about.
 */
export function subjectHeaders({ revision, session, method, params }: HttpSubject): Record<string, string> {
  const ofSession = session === undefined ? {} : { "mcp-session-id": session };
  if (revision === undefined) return ofSession;
  if (isModern(revision) && method !== undefined) return { ...ofSession, ...routingHeaders(revision, method, params) };
  return {
    ...ofSession,
    ...(hasVersionHeader(revision) && method !== "initialize" && { "mcp-protocol-version": revision }),
  };
}

export function isEventStream(contentType: string | null | undefined): boolean {
  return /^\s*text\/event-stream\s*(;|$)/i.test(contentType ?? "");
}

/** Larger than whoever reads it takes. */
export class TooLarge extends Error {
  override readonly name = "TooLarge";
}

/** What an answer brings: each event of a stream, or its whole body as if it were one; nothing for an empty body. */
export async function* readBody(
  body: AsyncIterable<Uint8Array>,
  isStream: boolean,
  maxBytes = Number.POSITIVE_INFINITY,
): AsyncGenerator<ServerEvent> {
  const events = new EventReader(maxBytes);
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (isStream) yield* events.push(chunk as Buffer);
    else parts.push(chunk);
    if (isStream ? events.isTooLarge : size > maxBytes) throw new TooLarge(`This is larger than ${maxBytes} bytes.`);
  }
  if (size > 0 && !isStream) yield { data: Buffer.concat(parts).toString("utf8"), id: undefined, retryMs: undefined };
}
