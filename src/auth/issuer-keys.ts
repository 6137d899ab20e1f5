import { isIP } from "node:net";
import {
  type CryptoKey,
  createLocalJWKSet,
  errors,
  type JSONWebKeySet,
  type JWSHeaderParameters,
  type LocalJWKSet,
} from "jose";
import { type Clock, within } from "../clock.ts";
import { messageOf } from "../errors.ts";
import type { Logger } from "../log.ts";
import { isLoopbackHost, kindOf } from "../wire/address-kinds.ts";
import { textOf } from "../wire/json.ts";
import { AuthenticationError } from "./authentication.ts";
import { IssuerDocumentError, readIssuerDocument } from "./issuer-document.ts";
import { type IssuerSettings, isSecureUrl } from "./issuers.ts";

/** Time limit for reading the keys, with the issuer's metadata. */
const fetchMs = 10_000;
/** Keys that are older are read again before they are used. */
const freshMs = 10 * 60_000;
/** How long a request with keys at hand waits for newer ones. */
const refreshMs = 1_000;
/** How long keys stay in use while the issuer cannot be reached. */
const keepMs = 24 * 60 * 60_000;
/** No second attempt for so long after one that failed. */
const retryMs = 10_000;
/** For a key that is not known the keys are read again, at most once in this time. */
const searchMs = 30_000;
/** The same failure is logged once in this time. */
const logMs = 60_000;

interface KeySet {
  readonly find: LocalJWKSet;
  readonly readAt: number;
}

interface IssuerKeysOptions {
  readonly issuer: Pick<IssuerSettings, "issuer" | "jwksUri">;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The public keys of an issuer. They are read when they are needed, and at most one request is open at a time. */
export class IssuerKeys {
  readonly #options: IssuerKeysOptions;
  #keys: KeySet | undefined;
  #pending: Promise<KeySet> | undefined;
  /** From the metadata; read again after a failure. */
  #discoveredUri: URL | undefined;
  #failedAt = Number.NEGATIVE_INFINITY;
  #searchedAt = Number.NEGATIVE_INFINITY;
  #loggedAt = Number.NEGATIVE_INFINITY;

  constructor(options: IssuerKeysOptions) {
    this.#options = options;
  }

  /**
   * Returns the key that a token names. Throws an error of `jose` where the issuer has no such key, and an
   * AuthenticationError where the issuer cannot be reached.
   */
  async find(header: JWSHeaderParameters): Promise<CryptoKey> {
    const keys = await this.#current();
    try {
      return await keys.find(header);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
      return await (await this.#search(error)).find(header);
    }
  }

  /** Reads the keys before the first request, so that a wrong setting is logged at the start. */
  async warmUp(): Promise<void> {
    await this.#read().catch(() => undefined);
  }

  async #current(): Promise<KeySet> {
    const keys = this.#keys;
    const now = this.#options.clock.monotonic();
    const ageMs = keys === undefined ? Number.POSITIVE_INFINITY : now - keys.readAt;
    if (keys !== undefined && ageMs < freshMs) return keys;
    const usable = ageMs < keepMs ? keys : undefined;
    if (this.#pending === undefined && now - this.#failedAt < retryMs) {
      if (usable === undefined) throw this.#unavailable();
      return usable;
    }
    if (usable === undefined) return await this.#read();
    const newer = await within(this.#options.clock, refreshMs, this.#read()).catch(() => undefined);
    return newer ?? usable;
  }

  /** Reads the keys again for one that is not among them; throws `error` where that was done a moment ago. */
  async #search(error: Error): Promise<KeySet> {
    const now = this.#options.clock.monotonic();
    if (this.#pending === undefined) {
      if (now - this.#failedAt < retryMs) throw this.#unavailable();
      if (now - this.#searchedAt < searchMs) throw error;
      this.#searchedAt = now;
    }
    return await this.#read();
  }

  /** Rejects with an AuthenticationError. */
  #read(): Promise<KeySet> {
    this.#pending ??= this.#fetch()
      .catch((error: unknown) => {
        this.#failedAt = this.#options.clock.monotonic();
        this.#discoveredUri = undefined;
        this.#logFailure(error);
        throw this.#unavailable();
      })
      .finally(() => {
        this.#pending = undefined;
      });
    return this.#pending;
  }

  async #fetch(): Promise<KeySet> {
    const { issuer, clock } = this.#options;
    const limit = new AbortController();
    const cancel = clock.after(fetchMs, () => limit.abort());
    try {
      const uri = issuer.jwksUri === undefined ? await this.#discover(limit.signal) : new URL(issuer.jwksUri);
      const document = await readIssuerDocument(uri, limit.signal);
      const find = createLocalJWKSet(document as unknown as JSONWebKeySet);
      this.#keys = { find, readAt: clock.monotonic() };
      return this.#keys;
    } finally {
      cancel();
    }
  }

  async #discover(signal: AbortSignal): Promise<URL> {
    this.#discoveredUri ??= await discoverKeys(this.#options.issuer.issuer, signal);
    return this.#discoveredUri;
  }

  #unavailable(): AuthenticationError {
    return new AuthenticationError(
      "unavailable",
      `The keys of the issuer ${this.#options.issuer.issuer} cannot be read at the moment; try again in a few seconds.`,
    );
  }

  #logFailure(error: unknown): void {
    const { issuer, clock, log } = this.#options;
    const now = clock.monotonic();
    if (now - this.#loggedAt < logMs) return;
    this.#loggedAt = now;
    log.warn("the keys of an issuer cannot be read", { issuer: issuer.issuer, reason: messageOf(error) });
  }
}

/** Finds the address of an issuer's keys in its metadata (RFC 8414, OpenID Connect Discovery). */
async function discoverKeys(issuer: string, signal: AbortSignal): Promise<URL> {
  const problems: string[] = [];
  for (const place of metadataPlaces(issuer)) {
    try {
      const document = await readIssuerDocument(place, signal);
      const named = textOf(document.issuer);
      if (named === issuer) return toKeysUrl(place, textOf(document.jwks_uri));
      problems.push(`${place.href} names the issuer ${JSON.stringify(named)}, not ${JSON.stringify(issuer)}.`);
    } catch (error) {
      if (!(error instanceof IssuerDocumentError && error.isMissing)) throw error;
      problems.push(error.message);
    }
  }
  throw new IssuerDocumentError(`There is no metadata of ${issuer}; set \`jwksUri\`. ${problems.join(" ")}`);
}

function metadataPlaces(issuer: string): readonly URL[] {
  const { pathname } = new URL(issuer);
  const path = pathname.replace(/\/$/, "");
  const places = [
    `/.well-known/oauth-authorization-server${path}`,
    `/.well-known/openid-configuration${path}`,
    `${path}/.well-known/openid-configuration`,
  ];
  return [...new Set(places)].map((place) => new URL(place, issuer));
}

function toKeysUrl(place: URL, uri: string | undefined): URL {
  if (uri !== undefined && mayNameAddress(place, uri)) return new URL(uri);
  throw new IssuerDocumentError(
    `${place.href} has no \`jwks_uri\` that may be read, set \`jwksUri\`; it is ${JSON.stringify(uri)}.`,
  );
}

/** False for an address of this machine or a private network that the metadata of a public issuer names. */
export function mayNameAddress(place: URL, address: string): boolean {
  return isSecureUrl(address) && (isPrivateHost(place) || !isPrivateHost(new URL(address)));
}

/** By the name alone, or by the address that stands in place of it. */
function isPrivateHost({ hostname }: URL): boolean {
  const host = hostname.replace(/^\[|\]$/g, "");
  return isLoopbackHost(host) || (isIP(host) !== 0 && kindOf(host) !== "public");
}
