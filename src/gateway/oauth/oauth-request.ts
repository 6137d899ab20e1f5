import type { IncomingMessage } from "node:http";
import { messageOf } from "../../errors.ts";
import { readBody, sendHttp } from "../../wire/http-client.ts";
import { isObject, type Json, parseWeighed } from "../../wire/json.ts";
import type { OAuthReach } from "./oauth-reach.ts";
import { quoteWords, SignInError } from "./sign-in-error.ts";

/** One exchange with an authorization server, or with an upstream about itself: small, bounded, and never passed on. */

const maxBytes = 256 * 1024;
const maxMs = 30_000;
const maxRedirects = 3;
const limits = { depth: 16, values: 10_000 } as const;

export interface OAuthRequest {
  /** Undefined: it is a GET. */
  readonly body?: { readonly type: "form" | "json"; readonly text: string } | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
}

export interface OAuthAnswer {
  readonly status: number;
  /** Undefined where it is no JSON object. */
  readonly body: Json | undefined;
}

const types = { form: "application/x-www-form-urlencoded", json: "application/json" } as const;

/** Asks and reads the answer, whatever its status. Throws a SignInError when there is none to be had. */
export async function askOAuth(
  url: URL,
  reach: OAuthReach,
  { body, headers = {}, signal }: OAuthRequest,
): Promise<OAuthAnswer> {
  const limit = AbortSignal.timeout(maxMs);
  const either = signal === undefined ? limit : AbortSignal.any([signal, limit]);
  const request = {
    method: body === undefined ? ("GET" as const) : ("POST" as const),
    headers: {
      accept: "application/json",
      ...(body !== undefined && { "content-type": types[body.type] }),
      ...headers,
    },
    body: body?.text,
    signal: either,
    lookup: reach.lookup,
  };
  try {
    const response = await followed(url, request, reach);
    return { status: response.statusCode ?? 0, body: await readObject(response) };
  } catch (cause) {
    signal?.throwIfAborted();
    if (cause instanceof SignInError) throw cause;
    const why = limit.aborted ? `did not answer within ${maxMs / 1000} s` : `failed: ${quoteWords(messageOf(cause))}`;
    throw new SignInError(`${url.host}, where ${reach.name} lets one sign in, ${why}.`, { isPassing: true, cause });
  }
}

/** What is only asked for may have moved on its own server; what is told to one is told to nobody else. */
async function followed(
  url: URL,
  request: Parameters<typeof sendHttp>[1],
  reach: OAuthReach,
): Promise<IncomingMessage> {
  let at = url;
  for (let turn = 0; turn <= maxRedirects; turn++) {
    const response = await sendHttp(at, request);
    const { location } = response.headers;
    const status = response.statusCode ?? 0;
    if (status < 300 || status >= 400 || location === undefined) return response;
    response.destroy();
    const next = URL.parse(location, at.href);
    if (request.method !== "GET" || next?.origin !== url.origin)
      throw new SignInError(`${url.host}, where ${reach.name} lets one sign in, leads elsewhere; it was not followed.`);
    at = next;
  }
  throw new SignInError(`${url.host}, where ${reach.name} lets one sign in, leads in circles.`);
}

async function readObject(response: IncomingMessage): Promise<Json | undefined> {
  let text = "";
  for await (const { data } of readBody(response, false, maxBytes)) text = data;
  const value = parseWeighed(text, limits)?.value;
  return isObject(value) ? value : undefined;
}
