/** The issuers whose access tokens are accepted, as the settings name them. */

/** Scopes that users of an issuer have beside those in their tokens. */
export interface ScopeGrant {
  /** Only for users with one of these groups. Default: for every user of the issuer. */
  readonly groups?: readonly string[];
  readonly scopes: readonly string[];
}

/** An authorization server whose access tokens are accepted. They must be JWTs. */
export interface IssuerSettings {
  /** The issuer identifier, exactly as in the `iss` claim of its tokens: an https URL, or http on this machine. */
  readonly issuer: string;
  /** Values of the `aud` claim of which a token must have one. Default: the public URL, with and without a final slash. */
  readonly audience?: string | readonly string[];
  /** The address of the issuer's keys. Default: as the issuer's metadata says. */
  readonly jwksUri?: string;
  /** Signature algorithms that are accepted. Default: all of RSA, ECDSA and EdDSA. */
  readonly algorithms?: readonly string[];
  /** The claim with the scopes. Default: the first of `scope`, `scp` and `permissions` that a token has. */
  readonly scopesClaim?: string;
  /** The claim with the groups, or a path to it, e.g. `realm_access.roles`. Default: `groups`. */
  readonly groupsClaim?: string;
  /** Gives each client of a user tasks of its own. Default: false, a user sees their tasks from every client. */
  readonly separateClients?: boolean;
  /** For an issuer that cannot put our scopes into its tokens. Default: none. */
  readonly grant?: readonly ScopeGrant[];
}

/** Algorithms with a public key. `none` and the HMAC algorithms are never accepted. */
export const signatureAlgorithms: readonly string[] = [
  ...["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"],
  ...["ES256", "ES384", "ES512", "EdDSA", "Ed25519"],
];

/** True for an https URL, or an http URL of this machine, without a password or fragment. */
export function isSecureUrl(text: string): boolean {
  const url = URL.parse(text);
  if (url === null || url.username !== "" || url.password !== "" || text.includes("#")) return false;
  return url.protocol === "https:" || (url.protocol === "http:" && isLoopback(url));
}

const isLoopback = ({ hostname }: URL) => /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/.test(hostname);

/** True for an http or https URL without a password, query and fragment: how clients may know this server. */
export function isPublicUrl(text: string): boolean {
  const url = URL.parse(text);
  if (url === null || url.username !== "" || url.password !== "") return false;
  return (url.protocol === "https:" || url.protocol === "http:") && !/[?#]/.test(text);
}

/** True for what may be an issuer identifier (RFC 8414, 2): a URL without a query. */
export function isIssuerUrl(text: string): boolean {
  return isSecureUrl(text) && !text.includes("?");
}
