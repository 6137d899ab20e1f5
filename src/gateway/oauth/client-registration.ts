import type { UpstreamOAuth } from "../../config.ts";
import type { Home } from "../../paths.ts";
import { thisProgram } from "../../program/program.ts";
import { numberOf, textOf } from "../../wire/json.ts";
import type { SignInPlace } from "./discover-sign-in.ts";
import type { OAuthReach } from "./oauth-reach.ts";
import { askOAuth } from "./oauth-request.ts";
import { SignInError } from "./sign-in-error.ts";
import { SignInFile } from "./sign-in-files.ts";
import { type ClientAuthMethod, type OAuthClient, toRefusal } from "./token-request.ts";

export interface RegistrationRequest {
  readonly place: SignInPlace;
  readonly reach: OAuthReach;
  readonly home: Home;
  readonly grant: "browser" | "device";
  /** Where a browser is sent back to. */
  readonly redirectUri: string | undefined;
  readonly now: number;
  readonly signal?: AbortSignal | undefined;
}

/** A client that has made itself known at one authorization server, and is known at no other. */
interface KnownClient extends OAuthClient {
  readonly redirectUri: string | undefined;
}

/** The client that the config names; undefined where it names none. */
export function configuredClient(oauth: UpstreamOAuth, methods: readonly string[]): OAuthClient | undefined {
  if (oauth.clientId === undefined) return undefined;
  const { clientId: id, clientSecret: secret } = oauth;
  return { id, secret, authMethod: secret === undefined ? "none" : methodFor(methods) };
}

const methodFor = (methods: readonly string[]): ClientAuthMethod =>
  methods.includes("client_secret_basic") || !methods.includes("client_secret_post")
    ? "client_secret_basic"
    : "client_secret_post";

const fileOf = (home: Home, issuer: string, grant: string) => new SignInFile(home, ["client", issuer, grant]);

/** The client of the last sign-in at an issuer, where it is still one. */
export function knownClient(
  home: Home,
  issuer: string,
  grant: "browser" | "device",
  now: number,
): KnownClient | undefined {
  const kept = fileOf(home, issuer, grant).read();
  const id = textOf(kept?.id);
  const isOver = (numberOf(kept?.secretExpiresAt) ?? Number.POSITIVE_INFINITY) <= now;
  if (kept === undefined || id === undefined || kept.issuer !== issuer || isOver) return undefined;
  return {
    id,
    secret: textOf(kept.secret),
    authMethod: toAuthMethod(kept.authMethod),
    redirectUri: textOf(kept.redirectUri),
  };
}

export function toAuthMethod(value: unknown): ClientAuthMethod {
  return value === "client_secret_basic" || value === "client_secret_post" ? value : "none";
}

export function forgetClient(home: Home, issuer: string, grant: "browser" | "device"): void {
  fileOf(home, issuer, grant).remove();
}

/** Makes ourselves known (RFC 7591), and keeps it for the next time. */
export async function registerClient(request: RegistrationRequest): Promise<OAuthClient> {
  const { place, reach, home, grant, redirectUri, now, signal } = request;
  if (place.registrationEndpoint === undefined)
    throw new SignInError(
      `The authorization server of ${reach.name} knows only clients that were made there; make one, and put its id into \`oauth.clientId\` of this upstream.`,
    );
  const text = JSON.stringify(ourselves(place, grant, redirectUri));
  const { status, body = {} } = await askOAuth(place.registrationEndpoint, reach, {
    body: { type: "json", text },
    signal,
  });
  if (status < 200 || status >= 300) throw toRefusal({ status, body, reach });
  const id = textOf(body.client_id);
  const secret = textOf(body.client_secret);
  if (id === undefined || id === "")
    throw new SignInError(`The authorization server of ${reach.name} has registered us without saying as whom.`);
  const said = textOf(body.token_endpoint_auth_method);
  const unsaid = secret === undefined ? "none" : methodFor(place.authMethods);
  const client = { id, secret, authMethod: said === undefined ? unsaid : toAuthMethod(said) };
  const seconds = numberOf(body.client_secret_expires_at) ?? 0;
  const secretExpiresAt = secret === undefined || seconds === 0 ? undefined : seconds * 1000;
  if (secretExpiresAt === undefined || secretExpiresAt > now)
    fileOf(home, place.issuer, grant).write({ issuer: place.issuer, ...client, redirectUri, secretExpiresAt });
  return client;
}

const deviceGrant = "urn:ietf:params:oauth:grant-type:device_code";

function ourselves(place: SignInPlace, grant: "browser" | "device", redirectUri: string | undefined): object {
  const method = ["none", "client_secret_basic", "client_secret_post"].find((it) => place.authMethods.includes(it));
  return {
    client_name: thisProgram.title,
    // OpenID Connect takes what says nothing for a web site, which may not be sent back to this machine.
    application_type: "native",
    token_endpoint_auth_method: method ?? "none",
    grant_types: [grant === "browser" ? "authorization_code" : deviceGrant, "refresh_token"],
    ...(grant === "browser" && { response_types: ["code"], redirect_uris: [redirectUri] }),
  };
}
