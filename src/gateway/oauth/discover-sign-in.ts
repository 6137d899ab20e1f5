import { parseScopes } from "../../auth/rights.ts";
import { type Json, listOf, textOf } from "../../wire/json.ts";
import type { OAuthReach } from "./oauth-reach.ts";
import { askOAuth } from "./oauth-request.ts";
import { quoteWords, SignInError } from "./sign-in-error.ts";
import type { BearerChallenge } from "./upstream-challenge.ts";

/**
 * Who gives out an upstream's tokens, and where. Since 2025-06-18 the upstream names its authorization server
 * (RFC 9728), and that one says where its endpoints are (RFC 8414, OpenID Connect Discovery). Of 2025-03-26 the
 * upstream's own origin is the authorization server, and where it says nothing its endpoints have known names.
 */
export interface SignInPlace {
  /** Whom the token is for, as RFC 8707 wants it said. */
  readonly resource: string;
  readonly issuer: string;
  readonly tokenEndpoint: URL;
  readonly authorizationEndpoint: URL | undefined;
  readonly deviceEndpoint: URL | undefined;
  readonly registrationEndpoint: URL | undefined;
  /** How a client may say who it is at the token endpoint. */
  readonly authMethods: readonly string[];
  /** What the upstream would have one ask for. */
  readonly scopes: readonly string[];
  readonly offersOfflineAccess: boolean;
  /** It says who it is when it sends the browser back (RFC 9207). */
  readonly sendsIssuer: boolean;
  readonly hasPkce: boolean;
}

export interface Whereabouts {
  readonly url: URL;
  readonly reach: OAuthReach;
  readonly challenge: BearerChallenge;
  /** Whether the upstream has asked for a token. */
  readonly isAsked: boolean;
  /** The authorization server of the last time, which is taken again where several are named. */
  readonly lastIssuer?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

export async function findSignIn(where: Whereabouts): Promise<SignInPlace> {
  const { url, reach, challenge } = where;
  const own = await findResource(where);
  if (own === undefined && !where.isAsked)
    throw new SignInError(`${reach.name} does not ask for a token, so there is nothing to sign in to.`);
  const named = own === undefined ? [] : listOf(own.document.authorization_servers).flatMap((it) => textOf(it) ?? []);
  const issuer = named.find((it) => it === where.lastIssuer) ?? named[0];
  if (own !== undefined && issuer === undefined)
    throw new SignInError(`${reach.name} wants a token, and does not say who gives them out.`);
  const server =
    issuer === undefined
      ? await findOldServer(where)
      : await findServer(where, issuer, reach.parse(issuer, "its issuer"));
  const supported = own === undefined ? [] : scopesOf(own.document);
  return { ...server, resource: own?.resource ?? toResource(url), scopes: challenge.scopes ?? supported };
}

type ServerPlace = Omit<SignInPlace, "resource" | "scopes">;

/** What the upstream says of itself; undefined where it says nothing, as before 2025-06-18. */
async function findResource({ url, reach, challenge, signal }: Whereabouts) {
  const known = "/.well-known/oauth-protected-resource";
  const path = url.pathname.replace(/\/$/, "");
  const places = [
    ...(challenge.resourceMetadata === undefined
      ? []
      : [reach.parse(challenge.resourceMetadata, "the place of its metadata")]),
    ...(path === "" && url.search === "" ? [] : [new URL(`${known}${path}${url.search}`, url)]),
    new URL(known, url),
  ];
  for (const place of places) {
    const document = await readDocument(place, { reach, signal });
    const said = textOf(document?.resource);
    if (document === undefined || said === undefined) continue;
    if (!covers(said, url))
      throw new SignInError(
        `${reach.name} says that it is ${quoteWords(said)}, which is another place than ${url.origin}; no token is asked for in that name.`,
      );
    return { document, resource: said };
  }
  return undefined;
}

/** True when a resource is the upstream, or what it is a part of. */
function covers(resource: string, url: URL): boolean {
  const said = URL.parse(resource);
  if (said === null || said.origin !== url.origin || said.hash !== "") return false;
  return `${url.pathname}/`.startsWith(said.pathname.endsWith("/") ? said.pathname : `${said.pathname}/`);
}

/** The upstream's address as its name: without a query, which RFC 8707 advises against, and which may hold a key. */
function toResource(url: URL): string {
  return `${url.origin}${url.pathname === "/" ? "" : url.pathname}`;
}

async function findServer(where: Whereabouts, said: string, issuer: URL): Promise<ServerPlace> {
  const document = await findServerDocument(where, said, issuer);
  if (document === undefined)
    throw new SignInError(
      `${issuer.host}, where ${where.reach.name} lets one sign in, says nothing of how that is done.`,
    );
  return readServer(document, where.reach);
}

async function findOldServer(where: Whereabouts): Promise<ServerPlace> {
  const { origin } = where.url;
  const document = await findServerDocument(where, origin, new URL(origin));
  if (document !== undefined) return readServer(document, where.reach);
  const at = (path: string) => where.reach.parse(`${origin}${path}`, "its address");
  return {
    issuer: origin,
    tokenEndpoint: at("/token"),
    authorizationEndpoint: at("/authorize"),
    deviceEndpoint: undefined,
    registrationEndpoint: at("/register"),
    authMethods: ["none", "client_secret_post", "client_secret_basic"],
    offersOfflineAccess: false,
    sendsIssuer: false,
    // That revision knows no other way.
    hasPkce: true,
  };
}

async function findServerDocument(
  { reach, signal }: Whereabouts,
  said: string,
  issuer: URL,
): Promise<Json | undefined> {
  const path = issuer.pathname.replace(/\/$/, "");
  const places = [`/.well-known/oauth-authorization-server${path}`, `/.well-known/openid-configuration${path}`];
  if (path !== "") places.push(`${path}/.well-known/openid-configuration`);
  for (const place of places) {
    const document = await readDocument(new URL(place, issuer), { reach, signal });
    if (document === undefined || textOf(document.token_endpoint) === undefined) continue;
    const own = textOf(document.issuer) ?? "";
    // An origin has no path: with a slash behind it and without, it is one.
    const isSame = own === said || (path === "" && own.replace(/\/$/, "") === said.replace(/\/$/, ""));
    if (!isSame)
      throw new SignInError(
        `${issuer.host}, where ${reach.name} lets one sign in, says that it is ${quoteWords(own)}; that is not believed.`,
      );
    return document;
  }
  return undefined;
}

function readServer(document: Json, reach: OAuthReach): ServerPlace {
  const endpoint = (field: string) => {
    const said = textOf(document[field]);
    return said === undefined ? undefined : reach.parse(said, `its ${field}`);
  };
  const methods = listOf(document.token_endpoint_auth_methods_supported).flatMap((it) => textOf(it) ?? []);
  return {
    issuer: textOf(document.issuer) ?? "",
    tokenEndpoint: endpoint("token_endpoint") as URL,
    authorizationEndpoint: endpoint("authorization_endpoint"),
    deviceEndpoint: endpoint("device_authorization_endpoint"),
    registrationEndpoint: endpoint("registration_endpoint"),
    authMethods: methods.length === 0 ? ["client_secret_basic", "none"] : methods,
    offersOfflineAccess: listOf(document.scopes_supported).includes("offline_access"),
    sendsIssuer: document.authorization_response_iss_parameter_supported === true,
    hasPkce: listOf(document.code_challenge_methods_supported).includes("S256"),
  };
}

function scopesOf(document: Json): string[] {
  return parseScopes(
    listOf(document.scopes_supported)
      .flatMap((scope) => textOf(scope) ?? [])
      .join(" "),
  );
}

/** A document of metadata; undefined where there is none. A server that is down is no server that says nothing. */
async function readDocument(
  url: URL,
  { reach, signal }: Pick<Whereabouts, "reach" | "signal">,
): Promise<Json | undefined> {
  const { status, body } = await askOAuth(url, reach, { signal });
  if (status >= 500 || status === 429)
    throw new SignInError(`${url.host}, where ${reach.name} lets one sign in, answered ${status}; try again later.`, {
      isPassing: true,
    });
  return status === 200 ? body : undefined;
}
