import http from "node:http";
import { env } from "node:process";
import { UsageError } from "../../errors.ts";
import { cut } from "../../wire/peer-errors.ts";
import type { UrlTarget } from "../client.ts";

/** Where a server is, and the caller's own headers; throws for what no request can be made of. */
export function targetOf(target: UrlTarget): { readonly url: URL; readonly own: Readonly<Record<string, string>> } {
  return { url: checkUrl(target.url), own: headersOf(target) };
}

function checkUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== "http:" && url.protocol !== "https:"))
    throw new UsageError(`The address ${cut(text.replace(/\/\/[^/]*@/, "//…@"), 100)} is no http or https URL.`);
  if (url.username !== "" || url.password !== "")
    throw new UsageError("A URL must not hold a name or a password; name the variable that holds the token instead.");
  return url;
}

const loopbackNames = /^(localhost|127(\.\d+){3}|\[::1\])$/;

/** The caller's own headers; the protocol's are put over them. No value of theirs is ever shown. */
function headersOf({ headers = {}, tokenVariable, url }: UrlTarget): Record<string, string> {
  for (const [name, value] of Object.entries(headers)) {
    try {
      http.validateHeaderName(name);
      http.validateHeaderValue(name, value);
    } catch {
      throw new UsageError(
        `The header ${JSON.stringify(cut(name, 60))} cannot be sent: its name or its value holds characters that headers may not have.`,
      );
    }
  }
  const own = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
  if (tokenVariable === undefined) return own;
  const token = env[tokenVariable]?.trim();
  if (token === undefined || token === "")
    throw new UsageError(
      `The variable ${tokenVariable} is ${token === undefined ? "not set" : "empty"}; it must hold the bearer token.`,
    );
  if (/[^\x21-\x7e]/.test(token))
    throw new UsageError(`The variable ${tokenVariable} holds characters that no bearer token has.`);
  const { protocol, hostname, origin } = new URL(url);
  if (protocol === "http:" && !loopbackNames.test(hostname))
    throw new UsageError(
      `The token of ${tokenVariable} would cross the network to ${origin} for everybody to read; use https.`,
    );
  return { ...own, authorization: `Bearer ${token}` };
}
