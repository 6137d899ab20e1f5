import type { Clock } from "../../clock.ts";
import type { UpstreamOAuth } from "../../config.ts";
import type { Home } from "../../paths.ts";
import { fieldsOf, type Json, listOf, numberOf, textOf } from "../../wire/json.ts";
import { toAuthMethod } from "./client-registration.ts";
import { SignInFile } from "./sign-in-files.ts";
import type { GivenTokens, OAuthClient } from "./token-request.ts";

/** An upstream that one signs in to, with every reference to a variable or a file resolved. */
export interface UpstreamSignIn {
  /** As sentences call it. */
  readonly name: string;
  readonly url: string;
  /** What every request to it says beside a token. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly oauth?: UpstreamOAuth | undefined;
  readonly home: Home;
  /** Whose tokens these are, where callers have their own. */
  readonly caller?: string | undefined;
  readonly clock?: Clock | undefined;
}

/** What is known of an upstream after signing in. What it says of itself later does not lead these tokens elsewhere. */
export interface KeptSignIn {
  readonly issuer: string;
  readonly resource: string;
  readonly tokenEndpoint: string;
  /** Without its secret, where that stands in the config. */
  readonly client: OAuthClient;
  /** What was asked for. */
  readonly scopes: readonly string[];
  /** What is to be asked for the next time that a person signs in. */
  readonly wanted?: readonly string[] | undefined;
  readonly tokens?: GivenTokens | undefined;
}

/** What is kept of signing in to one upstream, as one client. */
export class SignInMemory {
  readonly #file: SignInFile;
  readonly #oauth: UpstreamOAuth;

  constructor({ url, oauth = {}, home, caller }: UpstreamSignIn) {
    const who = oauth.grant === "client-credentials" ? "itself" : "person";
    this.#file = new SignInFile(home, ["tokens", new URL(url).href, oauth.clientId, who, caller]);
    this.#oauth = oauth;
  }

  read(): KeptSignIn | undefined {
    const kept = this.#file.read();
    return kept === undefined ? undefined : toKept(kept, this.#oauth);
  }

  write(kept: KeptSignIn): void {
    const { secret, ...client } = kept.client;
    const isConfigured = this.#oauth.clientId !== undefined;
    this.#file.write({ ...kept, client: isConfigured ? client : { ...client, secret } });
  }

  async alone<T>(clock: Clock, act: () => Promise<T>): Promise<T> {
    return await this.#file.alone(clock, act);
  }
}

function toKept(kept: Json, { clientSecret }: UpstreamOAuth): KeptSignIn | undefined {
  const [issuer, resource, tokenEndpoint] = [kept.issuer, kept.resource, kept.tokenEndpoint].map(textOf);
  const { id, secret, authMethod } = fieldsOf(kept.client);
  const clientId = textOf(id);
  if (issuer === undefined || resource === undefined || tokenEndpoint === undefined || clientId === undefined)
    return undefined;
  return {
    issuer,
    resource,
    tokenEndpoint,
    client: { id: clientId, secret: textOf(secret) ?? clientSecret, authMethod: toAuthMethod(authMethod) },
    scopes: textsOf(kept.scopes),
    wanted: kept.wanted === undefined ? undefined : textsOf(kept.wanted),
    tokens: toTokens(fieldsOf(kept.tokens)),
  };
}

function toTokens({ accessToken, refreshToken, obtainedAt, expiresAt, scopes }: Json): GivenTokens | undefined {
  if (typeof accessToken !== "string") return undefined;
  return {
    accessToken,
    refreshToken: textOf(refreshToken),
    obtainedAt: numberOf(obtainedAt) ?? 0,
    expiresAt: numberOf(expiresAt),
    scopes: scopes === undefined ? undefined : textsOf(scopes),
  };
}

const textsOf = (value: unknown) => listOf(value).flatMap((it) => textOf(it) ?? []);
