import http, { type IncomingMessage } from "node:http";
import https from "node:https";
import { systemClock } from "../clock.ts";
import { ConnectionError } from "./errors.ts";

/**
 * One HTTP exchange. `fetch` gives up after five silent minutes, which is what slow tools are, and hides why it failed;
 * node's own `request` does neither.
 */

export interface Exchange {
  readonly method: "POST" | "GET" | "DELETE";
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal?: AbortSignal | undefined;
  /** Undefined: a connection of its own. */
  readonly agent: http.Agent | undefined;
}

const maxRedirects = 5;

/** Sends a request and resolves with the head of its answer. Redirects are followed on the same origin only, so that no header ever leaves it. */
export async function exchange(url: URL, wish: Exchange): Promise<IncomingMessage> {
  let at = url;
  for (let redirects = 0; ; redirects++) {
    const response = await send(at, wish);
    const { statusCode: status = 0, headers } = response;
    if (status < 300 || status >= 400 || status === 304) return response;
    response.resume();
    const next = headers.location !== undefined && URL.canParse(headers.location, at.href) ? new URL(headers.location, at) : undefined;
    if (next === undefined) throw refusal(url, `answers with status ${status} and no address to go to`);
    if (next.origin !== url.origin)
      throw refusal(url, `redirects to another origin, ${next.origin}, and that is never followed; use that address if you trust it`);
    if (status !== 307 && status !== 308)
      throw refusal(url, `redirects with status ${status}, which would lose the request; use ${next.origin}${next.pathname}`);
    if (redirects === maxRedirects) throw refusal(url, `redirects more than ${maxRedirects} times`);
    at = next;
  }
}

function refusal(url: URL, what: string): ConnectionError {
  return new ConnectionError(`${url.origin} ${what}.`, { isPassing: false });
}

function send(url: URL, { method, headers, body, signal, agent }: Exchange): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const { request } = url.protocol === "https:" ? https : http;
    const length = body === undefined ? {} : { "content-length": String(Buffer.byteLength(body)) };
    let incoming: IncomingMessage | undefined;
    const outgoing = request(url, { method, headers: { ...headers, ...length }, agent: agent ?? false }, (response) => {
      incoming = response;
      resolve(response);
    });
    // By hand, because node's own `signal` raises an error on the socket that nobody can catch once the answer is being read.
    const onAbort = () => void (incoming === undefined ? outgoing.destroy(new Error("aborted")) : incoming.destroy());
    signal?.addEventListener("abort", onAbort, { once: true });
    outgoing.on("close", () => signal?.removeEventListener("abort", onAbort));
    outgoing.on("error", (cause: NodeJS.ErrnoException) => reject(signal?.aborted ? signal.reason : toConnectionError(url, cause)));
    outgoing.end(body);
  });
}

/** What never got a connection has certainly not reached the server. */
const unsentCodes = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH"]);

export function toConnectionError(url: URL, cause: NodeJS.ErrnoException): ConnectionError {
  const { code = cause.message } = cause;
  const isUnsent = unsentCodes.has(code);
  const what = code === "ECONNREFUSED" ? "Nothing listens there" : code === "ENOTFOUND" ? "There is no host of that name" : `The connection failed (${code})`;
  return new ConnectionError(`${url.origin} cannot be reached: ${what}.`, { isUnsent, cause });
}

/** Milliseconds that a `Retry-After` asks for: seconds, or a date. */
export function retryAfterMs(value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  if (/^\d+$/.test(value.trim())) return Number(value) * 1000;
  const at = Date.parse(value);
  return Number.isNaN(at) ? undefined : Math.max(0, at - systemClock.now());
}
