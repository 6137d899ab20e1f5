import type { IncomingMessage } from "node:http";
import { systemClock } from "../../clock.ts";
import { type HttpRequest, sendHttp } from "../../wire/http-client.ts";
import { ConnectionError } from "../../wire/peer-errors.ts";
import { orAborted } from "./or-aborted.ts";

const maxRedirects = 5;

/** Has tokens for a server that wants one. */
export interface HttpAuthorizer {
  /** The value of `Authorization` for the next request; undefined where there is none yet. */
  header(): Promise<string | undefined>;
  /** A request with the header `sent` was refused with this `WWW-Authenticate`. True when there is a new token now. */
  refused(challenge: string | undefined, sent: string | undefined): Promise<boolean>;
}

/** The same as `exchange`; a request that was refused for its token is sent once more with a new one. */
export async function exchangeAs(
  authorizer: HttpAuthorizer | undefined,
  url: URL,
  options: HttpRequest,
): Promise<IncomingMessage> {
  if (authorizer === undefined) return await exchange(url, options);
  const send = async () => {
    const token = await orAborted(authorizer.header(), options.signal);
    const headers = { ...options.headers, ...(token !== undefined && { authorization: token }) };
    return { token, response: await exchange(url, { ...options, headers }) };
  };
  const { token, response } = await send();
  if (!wantsToken(response)) return response;
  try {
    if (!(await orAborted(authorizer.refused(response.headers["www-authenticate"], token), options.signal)))
      return response;
  } catch (error) {
    response.destroy();
    throw error;
  }
  response.resume();
  return (await send()).response;
}

/** Also one with more rights: https://www.rfc-editor.org/rfc/rfc6750#section-3.1 */
function wantsToken({ statusCode, headers }: IncomingMessage): boolean {
  const challenge = headers["www-authenticate"] ?? "";
  return statusCode === 401 || (statusCode === 403 && /error="?insufficient_scope/.test(challenge));
}

/**
 * Sends a request and resolves with the head of its answer. Redirects are followed on the same origin only, so that no
 * header ever leaves it.
 */
async function exchange(url: URL, options: HttpRequest): Promise<IncomingMessage> {
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
    // Such an address is no server's, and must not be suggested.
    if (next.protocol !== "http:" && next.protocol !== "https:")
      throw refusal(url, `redirects to a ${next.protocol} address, and that is never followed`);
    if (next.origin !== url.origin)
      throw refusal(
        url,
        `redirects to another origin, ${next.origin}, and that is never followed; if you trust it, use ${next.origin}${next.pathname} as the url`,
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
/** What is said of a certificate, before anything else is: https://www.openssl.org/docs/manmaster/man3/X509_verify_cert_error_string.html */
const certificateCodes = /CERT|^UNABLE_TO_|^HOSTNAME_MISMATCH$|^INVALID_(CA|PURPOSE)$/;

export function toConnectionError(url: URL, cause: NodeJS.ErrnoException): ConnectionError {
  const { code = cause.message } = cause;
  if (certificateCodes.test(code))
    return new ConnectionError(
      `${url.origin} cannot be trusted: its certificate is not one that this machine believes (${code}); one of your own authority is believed when NODE_EXTRA_CA_CERTS names its file.`,
      { isUnsent: true, isPassing: false, cause },
    );
  const isUnsent = unsentCodes.has(code) || isAboutConnecting(cause);
  const what =
    code === "ECONNREFUSED"
      ? "Nothing listens there"
      : code === "ENOTFOUND"
        ? "There is no host of that name"
        : `The connection failed (${code})`;
  return new ConnectionError(`${url.origin} cannot be reached: ${what}.`, { isUnsent, cause });
}

/** Of a name with several addresses each was tried. */
function isAboutConnecting(
  cause: NodeJS.ErrnoException & { readonly errors?: readonly NodeJS.ErrnoException[] },
): boolean {
  const tried = cause.errors ?? [cause];
  return tried.length > 0 && tried.every(({ syscall }) => syscall === "connect");
}

/** Milliseconds that a `Retry-After` asks for: seconds, or a date. */
export function retryAfterMs(value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  if (/^\d+$/.test(value.trim())) return Number(value) * 1000;
  const at = Date.parse(value);
  return Number.isNaN(at) ? undefined : Math.max(0, at - systemClock.now());
}
