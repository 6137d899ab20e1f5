import { parseScopes } from "../../auth/rights.ts";
import type { Clock } from "../../clock.ts";
import { numberOf, textOf } from "../../wire/json.ts";
import type { OAuthReach } from "./oauth-reach.ts";
import { askOAuth } from "./oauth-request.ts";
import { quoteWords, SignInError } from "./sign-in-error.ts";

/** Who we are at an authorization server. */
export interface OAuthClient {
  readonly id: string;
  /** Undefined for one that has none, and in files for one whose secret stands in the config. */
  readonly secret?: string | undefined;
  readonly authMethod: ClientAuthMethod;
}

export type ClientAuthMethod = "none" | "client_secret_basic" | "client_secret_post";

export interface GivenTokens {
  readonly accessToken: string;
  readonly refreshToken: string | undefined;
  readonly obtainedAt: number;
  /** Undefined: nobody knows. */
  readonly expiresAt: number | undefined;
  /** What was granted, where that is said. */
  readonly scopes: readonly string[] | undefined;
}

export interface TokenRequest {
  readonly endpoint: URL;
  readonly reach: OAuthReach;
  readonly client: OAuthClient;
  /** With the grant and whom the token is for. */
  readonly form: Readonly<Record<string, string>>;
  readonly clock: Clock;
  readonly signal?: AbortSignal | undefined;
}

const maxTokenLength = 16_384;
/** A token that ends later ends some day. */
const maxSeconds = 10 * 365 * 86_400;

/** Asks for tokens. Throws a SignInError with the server's own code where it says no. */
export async function requestTokens({
  endpoint,
  reach,
  client,
  form,
  clock,
  signal,
}: TokenRequest): Promise<GivenTokens> {
  const { fields, headers } = asClient(client, form);
  const { status, body = {} } = await askOAuth(endpoint, reach, {
    body: { type: "form", text: new URLSearchParams(fields).toString() },
    headers,
    signal,
  });
  const secrets = [...Object.values(fields).filter((value) => value.length >= 16), client.secret ?? ""];
  if (status < 200 || status >= 300 || body.error !== undefined) throw toRefusal({ status, body, reach, secrets });
  const accessToken = textOf(body.access_token) ?? "";
  if (!/^[\x21-\x7e]+$/.test(accessToken) || accessToken.length > maxTokenLength)
    throw new SignInError(`The authorization server of ${reach.name} answered without a token that can be sent.`);
  if (textOf(body.token_type)?.toLowerCase() !== "bearer")
    throw new SignInError(`The authorization server of ${reach.name} gives tokens of a kind that is not known here.`);
  const seconds = numberOf(body.expires_in) ?? Number(textOf(body.expires_in));
  const now = clock.now();
  const scope = textOf(body.scope);
  return {
    accessToken,
    refreshToken: textOf(body.refresh_token),
    obtainedAt: now,
    expiresAt: seconds >= 0 ? now + Math.min(seconds, maxSeconds) * 1000 : undefined,
    scopes: scope === undefined ? undefined : parseScopes(scope),
  };
}

/** What a server says that refuses. */
export function toRefusal({
  status,
  body,
  reach,
  secrets = [],
}: {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
  readonly reach: OAuthReach;
  readonly secrets?: readonly string[];
}): SignInError {
  const code = textOf(body.error);
  const words = [code, textOf(body.error_description)].flatMap((said) => said ?? []).join(": ");
  const said = words === "" ? `answered ${status}` : `says ${quoteWords(words, secrets)}`;
  return new SignInError(`The authorization server of ${reach.name} ${said}.`, {
    code,
    isPassing: status >= 500 || status === 429,
  });
}

/** A form with the client in it, or in a header beside it. */
export function asClient(client: OAuthClient, form: Readonly<Record<string, string>>) {
  const { id, secret = "", authMethod } = client;
  const isBasic = authMethod === "client_secret_basic";
  const headers: Record<string, string> = isBasic ? { authorization: `Basic ${toBasic(id, secret)}` } : {};
  const fields: Record<string, string> = { ...form };
  if (!isBasic) fields.client_id = id;
  if (authMethod === "client_secret_post") fields.client_secret = secret;
  return { fields, headers };
}

/** Both are written as in a form before they are joined (RFC 6749, 2.3.1). */
function toBasic(id: string, secret: string): string {
  const encode = (text: string) => new URLSearchParams({ "": text }).toString().slice(1);
  return Buffer.from(`${encode(id)}:${encode(secret)}`).toString("base64");
}
