import type { IncomingMessage } from "node:http";
import { systemClock } from "../../clock.ts";
import { type HttpRequest, sendHttp } from "../../wire/http-client.ts";
import { ConnectionError } from "../../wire/peer-errors.ts";

const maxRedirects = 5;

/**
 * Sends a request and resolves with the head of its answer. Redirects are followed on the same origin only, so that no
 * header ever leaves it.
 */
export async function exchange(url: URL, options: HttpRequest): Promise<IncomingMessage> {
  let at = url;
  for (let redirects = 0; ; redirects++) {
    const response = await sendHttp(at, options).catch((cause) =>
      Promise.reject(options.signal?.aborted ? cause : toConnectionError(url, cause)),
    );
    const { statusCode: status = 0, headers } = response;
    if (status < 300 || status >= 400 || status === 304) return response;
    response.resume();
    const next =
      headers.location !== undefined && URL.canParse(headers.location, at.href)
        ? new URL(headers.location, at)
        : undefined;
    if (next === undefined) throw refusal(url, `answers with status ${status} and no address to go to`);
    if (next.origin !== url.origin)
      throw refusal(
        url,
        `redirects to another origin, ${next.origin}, and that is never followed; use that address if you trust it`,
      );
    if (status !== 307 && status !== 308)
      throw refusal(
        url,
        `redirects with status ${status}, which would lose the request; use ${next.origin}${next.pathname}`,
      );
    if (redirects === maxRedirects) throw refusal(url, `redirects more than ${maxRedirects} times`);
    at = next;
  }
}

function refusal(url: URL, what: string): ConnectionError {
  return new ConnectionError(`${url.origin} ${what}.`, { isPassing: false });
}

/** What never got a connection has certainly not reached the server. */
const unsentCodes = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH"]);

export function toConnectionError(url: URL, cause: NodeJS.ErrnoException): ConnectionError {
  const { code = cause.message } = cause;
  const isUnsent = unsentCodes.has(code);
  const what =
    code === "ECONNREFUSED"
      ? "Nothing listens there"
      : code === "ENOTFOUND"
        ? "There is no host of that name"
        : `The connection failed (${code})`;
  return new ConnectionError(`${url.origin} cannot be reached: ${what}.`, { isUnsent, cause });
}

/** Milliseconds that a `Retry-After` asks for: seconds, or a date. */
export function retryAfterMs(value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  if (/^\d+$/.test(value.trim())) return Number(value) * 1000;
  const at = Date.parse(value);
  return Number.isNaN(at) ? undefined : Math.max(0, at - systemClock.now());
}
