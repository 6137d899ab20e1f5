import type { Caller } from "../command/caller.ts";

/** A credential that was checked. */
export interface Authentication {
  readonly caller: Caller;
  /** Patterns of the tools that the credential may call; absent: every tool that the caller may call. */
  readonly commands?: readonly string[] | undefined;
  /** Where the scopes come from, for the error of a caller with too few: "the claim `scope`", "the API key ci". */
  readonly scopesFrom?: string | undefined;
  /** When the credential stops being valid, in milliseconds of the wall clock; absent: it does not expire. */
  readonly validUntil?: number | undefined;
  /** True while the credential is valid. Asked again and again while a stream is open; rejects where that cannot be found out. */
  readonly isStillValid?: (() => boolean | Promise<boolean>) | undefined;
}

/** Why a request is refused. `invalid` and `missing` are 401, `unavailable` is 503 with Retry-After. */
export class AuthenticationError extends Error {
  override name = "AuthenticationError";
  readonly kind: "missing" | "invalid" | "unavailable";

  constructor(kind: AuthenticationError["kind"], message: string, options?: ErrorOptions) {
    super(message, options);
    this.kind = kind;
  }
}

/** Checks one kind of bearer token. */
export interface TokenVerifier {
  /** True for a token of this kind, whether it is valid or not. Looks at its form alone. */
  accepts(token: string): boolean;
  /** Throws, or rejects with, an AuthenticationError. */
  verify(token: string): Authentication | Promise<Authentication>;
}
