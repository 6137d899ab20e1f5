import { timingSafeEqual } from "node:crypto";
import { anonymous, type Caller } from "../command/caller.ts";
import { thisProgram } from "../program/program.ts";
import { keyPrefix } from "./api-key.ts";
import { type Authentication, AuthenticationError, type TokenVerifier } from "./authentication.ts";

/** What identifies the caller of an HTTP request. */
export interface Credentials {
  readonly authorization: string | undefined;
  /** More than one Authorization header was sent. */
  readonly isRepeated: boolean;
  /** The query has a parameter `access_token` or `token`. */
  readonly isInQuery: boolean;
}

export interface AuthenticatorOptions {
  /** Returns the present token of the home. A request with it is the local user's. */
  readonly homeToken: () => string;
  readonly localUser: Caller;
  /** Accepts requests without a credential, as those of the caller `anonymous`. */
  readonly allowAnonymous: boolean;
  /** What else is accepted. Default: nothing. */
  readonly verifiers?: readonly TokenVerifier[] | undefined;
  /** The issuers at which users sign in, for errors. Default: none. */
  readonly issuers?: readonly string[] | undefined;
}

/** Identifies the caller. Throws, or rejects with, an AuthenticationError for a request without a valid credential. */
export type Authenticator = (credentials: Credentials) => Authentication | Promise<Authentication>;

const unidentified: Authentication = { caller: anonymous };

/** A credential that is wrong, expired or of an unknown kind is an error, never the caller `anonymous`. */
export function createAuthenticator(options: AuthenticatorOptions): Authenticator {
  const { homeToken, localUser, allowAnonymous, verifiers = [], issuers = [] } = options;
  const hasKeys = verifiers.some((one) => one.accepts(keyPrefix));
  const cure = () => cureFor(issuers, hasKeys);
  const isHomeToken = (token: string) => isSameSecret(token, homeToken());
  const asLocalUser = (token: string): Authentication | undefined =>
    isHomeToken(token) ? { caller: localUser, isStillValid: () => isHomeToken(token) } : undefined;
  return ({ authorization, isRepeated, isInQuery }) => {
    if (isInQuery) throw refusal(`A token in the URL is not taken, because URLs are kept and logged; ${cure()}.`);
    if (isRepeated) throw refusal(`There is more than one Authorization header; ${cure()}, once.`);
    if (authorization === undefined) {
      if (allowAnonymous) return unidentified;
      const text = `This server wants to know who calls; ${cure()}, or start it with --allow-anonymous.`;
      throw new AuthenticationError("missing", text);
    }
    const token = /^Bearer +(\S+)$/i.exec(authorization)?.[1];
    if (token === undefined) throw refusal(`The Authorization header holds no bearer token; ${cure()}.`);
    // The home's token comes last, because comparing with it looks at its file. It may have any form.
    const verifier = verifiers.find((one) => one.accepts(token));
    if (verifier !== undefined) return verify(verifier, token, asLocalUser);
    const local = asLocalUser(token);
    if (local === undefined) throw refusal(`${issuers.length === 0 ? notOurs(hasKeys) : opaque}; ${cure()}.`);
    return local;
  };
}

/** `orElse` is asked about a token that the verifier refuses. An error that a verifier does not expect refuses too. */
function verify(
  verifier: TokenVerifier,
  token: string,
  orElse: (token: string) => Authentication | undefined,
): Authentication | Promise<Authentication> {
  const refuse = (error: unknown): Authentication => {
    const found = orElse(token);
    if (found === undefined) throw asRefusal(error);
    return found;
  };
  try {
    const found = verifier.verify(token);
    return found instanceof Promise ? found.catch(refuse) : found;
  } catch (error) {
    return refuse(error);
  }
}

function asRefusal(error: unknown): AuthenticationError {
  if (error instanceof AuthenticationError) return error;
  return new AuthenticationError("invalid", "The bearer token could not be checked; the server's log says why.", {
    cause: error,
  });
}

function refusal(text: string): AuthenticationError {
  return new AuthenticationError("invalid", text);
}

const notOurs = (hasKeys: boolean) => `The bearer token is ${hasKeys ? "no API key, and " : ""}not this home's`;
const opaque = "The bearer token is not a JWT, and opaque access tokens are not accepted";

function cureFor(issuers: readonly string[], hasKeys: boolean): string {
  const signIn = issuers.length === 0 ? "" : `sign in at ${issuers.join(" or ")}, or `;
  return `${signIn}send \`Authorization: Bearer …\` ${hasKeys ? "with an API key, or " : ""}with what \`${thisProgram.name} token\` prints`;
}

/** Compares in a time that does not depend on the texts. An empty secret equals nothing. */
function isSameSecret(given: string, expected: string): boolean {
  const [one, other] = [Buffer.from(given), Buffer.from(expected)];
  return other.length > 0 && one.length === other.length && timingSafeEqual(one, other);
}
