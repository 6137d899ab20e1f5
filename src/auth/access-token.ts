import { hash as hashText } from "node:crypto";
import { decodeJwt, decodeProtectedHeader, errors, type JWTPayload, jwtVerify } from "jose";
import type { Clock } from "../clock.ts";
import { messageOf } from "../errors.ts";
import type { Logger } from "../log.ts";
import { type Authentication, AuthenticationError, type TokenVerifier } from "./authentication.ts";
import { IssuerKeys } from "./issuer-keys.ts";
import { type IssuerSettings, signatureAlgorithms } from "./issuers.ts";
import { callerOfClaims, isIdToken } from "./token-claims.ts";

export interface TokenVerifierOptions {
  readonly issuers: readonly IssuerSettings[];
  /** The URL of the server as clients know it: the default audience. */
  readonly publicUrl: () => string;
  readonly clock: Clock;
  readonly log: Logger;
}

/** How far the clocks of an issuer and of this machine may differ. */
const toleranceSeconds = 60;
/** How long a token is not verified again. */
const cacheMs = 60_000;
const maxCached = 10_000;
const maxTokenLength = 16 * 1024;
/** The same reason is logged once in this time. */
const logMs = 60_000;
const maxLoggedLength = 200;

/** Verifies access tokens of the configured issuers: JWTs that are signed with a key of the issuer (RFC 9068). */
export function createTokenVerifier(options: TokenVerifierOptions): TokenVerifier {
  return new AccessTokenVerifier(options);
}

interface Issuer {
  readonly settings: IssuerSettings;
  readonly keys: IssuerKeys;
}

interface Verified {
  readonly authentication: Authentication;
  /** In milliseconds of the wall clock. */
  readonly until: number;
}

class AccessTokenVerifier implements TokenVerifier {
  readonly #options: TokenVerifierOptions;
  readonly #issuers: ReadonlyMap<string, Issuer>;
  /** By the SHA-256 of the token, oldest first. */
  readonly #verified = new Map<string, Verified>();
  /** The verifications that have not ended, by the SHA-256 of the token. */
  readonly #pending = new Map<string, Promise<Authentication>>();
  readonly #loggedAt = new Map<string, number>();

  constructor(options: TokenVerifierOptions) {
    this.#options = options;
    this.#issuers = new Map(
      options.issuers.map((settings) => [
        settings.issuer,
        { settings, keys: new IssuerKeys({ issuer: settings, clock: options.clock, log: options.log }) },
      ]),
    );
    for (const { keys } of this.#issuers.values()) void keys.warmUp();
  }

  accepts(token: string): boolean {
    return /^[\w-]+\.[\w-]+\.[\w-]*$/.test(token);
  }

  verify(token: string): Authentication | Promise<Authentication> {
    if (token.length > maxTokenLength) throw invalid("The access token is too long.");
    const hash = hashText("sha256", token, "base64url");
    const known = this.#verified.get(hash);
    if (known !== undefined && known.until > this.#options.clock.now()) return known.authentication;
    const pending = this.#pending.get(hash) ?? this.#verifyOnce(token, hash);
    this.#pending.set(hash, pending);
    return pending;
  }

  async #verifyOnce(token: string, hash: string): Promise<Authentication> {
    try {
      const authentication = await this.#check(token);
      const expiresAt = (authentication.validUntil ?? 0) - toleranceSeconds * 1000;
      this.#remember(hash, { authentication, until: Math.min(this.#options.clock.now() + cacheMs, expiresAt) });
      return authentication;
    } finally {
      this.#pending.delete(hash);
    }
  }

  #remember(hash: string, verified: Verified): void {
    const now = this.#options.clock.now();
    this.#verified.delete(hash);
    for (const [oldest, { until }] of this.#verified) {
      if (until > now && this.#verified.size < maxCached) break;
      this.#verified.delete(oldest);
    }
    this.#verified.set(hash, verified);
  }

  async #check(token: string): Promise<Authentication> {
    const { settings: issuer, keys } = this.#issuerOf(token);
    try {
      const { payload } = await jwtVerify(token, (header) => keys.find(header), {
        issuer: issuer.issuer,
        audience: [...this.#audienceOf(issuer)],
        algorithms: [...(issuer.algorithms ?? signatureAlgorithms)],
        requiredClaims: ["exp"],
        clockTolerance: toleranceSeconds,
        currentDate: new Date(this.#options.clock.now()),
      });
      if (isIdToken(payload)) throw invalid("This is an ID token; send the access token.");
      const validUntil = ((payload.exp ?? 0) + toleranceSeconds) * 1000;
      return Object.freeze({ ...callerOfClaims(payload, issuer), validUntil });
    } catch (error) {
      throw this.#toRefusal(error, issuer);
    }
  }

  /** The issuer that the token names. Nothing of the token is trusted before its signature is verified. */
  #issuerOf(token: string): Issuer {
    const { payload, header } = decode(token);
    const typ = header.typ?.toLowerCase();
    if (typ !== undefined && !accessTokenTypes.has(typ)) throw invalid(notAnAccessToken);
    const issuer = this.#issuers.get(payload.iss ?? "");
    if (issuer !== undefined) return issuer;
    const known = [...this.#issuers.keys()];
    // Nobody has verified this claim, so a part of it has to do.
    const claimed: unknown = payload.iss;
    const found = typeof claimed === "string" ? claimed.slice(0, maxLoggedLength) : undefined;
    const facts = { found, expected: known };
    this.#warn("an access token of another issuer was refused; see the setting `auth.issuers`", facts);
    throw invalid(
      `The access token is of an issuer that this server does not accept; get one from ${known.join(" or ")}.`,
    );
  }

  #audienceOf({ audience }: IssuerSettings): readonly string[] {
    if (audience !== undefined) return typeof audience === "string" ? [audience] : audience;
    const url = this.#options.publicUrl().replace(/\/$/, "");
    return [url, `${url}/`];
  }

  /**
   * What the client is told. The reason of a refused signature is for the log alone. The error of `jose` is not passed
   * on, because the claims of the token are in it.
   */
  #toRefusal(error: unknown, issuer: IssuerSettings): AuthenticationError {
    if (error instanceof AuthenticationError) return error;
    if (error instanceof errors.JWTExpired)
      return invalid("The access token has expired; get a new one from its issuer.");
    if (error instanceof errors.JWTClaimValidationFailed && error.claim === "aud") {
      const facts = { issuer: issuer.issuer, audience: error.payload.aud, expected: this.#audienceOf(issuer) };
      this.#warn("an access token for another audience was refused; see the setting `audience` of the issuer", facts);
      const url = this.#options.publicUrl();
      return invalid(`The access token is not for this server; get one for the resource ${url}.`);
    }
    if (error instanceof errors.JWTClaimValidationFailed && error.claim === "nbf")
      return invalid("The access token is not valid yet; compare the clocks of the issuer and of this machine.");
    this.#warn("an access token was refused", { issuer: issuer.issuer, reason: messageOf(error) });
    return invalid("The access token is not valid; get a new one from its issuer.");
  }

  #warn(text: string, facts: { readonly issuer?: string; readonly [name: string]: unknown }): void {
    const key = `${facts.issuer ?? ""} ${text}`;
    const now = this.#options.clock.monotonic();
    if (now - (this.#loggedAt.get(key) ?? Number.NEGATIVE_INFINITY) < logMs) return;
    this.#loggedAt.set(key, now);
    this.#options.log.warn(text, facts);
  }
}

/** RFC 9068, section 4; the claim `typ` of the header may be missing, too. */
const accessTokenTypes: ReadonlySet<string> = new Set(["at+jwt", "application/at+jwt", "jwt"]);
const notAnAccessToken = "This is a JWT of another kind; send the access token.";

function invalid(message: string): AuthenticationError {
  return new AuthenticationError("invalid", message);
}

function decode(token: string): { readonly payload: JWTPayload; readonly header: { readonly typ?: string } } {
  try {
    const { typ, ...header } = decodeProtectedHeader(token);
    if (typ !== undefined && typeof typ !== "string") throw new TypeError("typ is not text");
    return { payload: decodeJwt(token), header: { ...header, ...(typ !== undefined && { typ }) } };
  } catch {
    throw invalid("The access token is not a JWT; opaque tokens are not accepted.");
  }
}
