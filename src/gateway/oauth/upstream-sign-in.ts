import type { UpstreamConfig, UpstreamOAuth } from "../../config.ts";
import type { Home } from "../../paths.ts";
import { resolveValue, type SessionPlace } from "../resolve-address.ts";
import type { UpstreamAddress } from "../upstream-link.ts";
import type { UpstreamSignIn } from "./kept-sign-in.ts";

/**
 * How an upstream is signed in to; undefined where nobody does that here: what is started by a command signs in by
 * itself, and a config that has its own `Authorization` says what is sent.
 */
export function toSignIn(
  { oauth }: UpstreamConfig,
  address: UpstreamAddress,
  { place, home }: { readonly place: SessionPlace; readonly home: Home },
): UpstreamSignIn | undefined {
  if (address.kind !== "url" || hasAuthorization(address.headers)) return undefined;
  const { url, headers } = address;
  return { name: place.name, url, headers, oauth: oauth === undefined ? undefined : resolveOAuth(oauth, place), home };
}

const hasAuthorization = (headers: Readonly<Record<string, string>>) =>
  Object.keys(headers).some((name) => name.toLowerCase() === "authorization");

function resolveOAuth({ clientId, clientSecret, ...rest }: UpstreamOAuth, place: SessionPlace): UpstreamOAuth {
  return {
    ...rest,
    ...(clientId !== undefined && { clientId: resolveValue(clientId, "oauth.clientId", place) }),
    ...(clientSecret !== undefined && { clientSecret: resolveValue(clientSecret, "oauth.clientSecret", place) }),
  };
}

/** What a person types to sign in. An address that is named by a variable may hold a key, and is not repeated. */
export function loginWords(name: string, { url = "" }: UpstreamConfig, isWrap: boolean): string {
  if (!isWrap) return `upstreams login ${name}`;
  const shown = url.includes("${") || url.includes("?") ? "<its address>" : url;
  return `wrap --login --url ${/^[\w:/.%+~-]+$/.test(shown) ? shown : `'${shown.replaceAll("'", "")}'`}`;
}
