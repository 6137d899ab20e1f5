import { ProtocolError, RpcCode } from "../errors.ts";
import type { Authentication } from "./authentication.ts";

/** An error names this many characters of the scopes that a caller has. */
const maxHeld = 500;

/** The caller has too few scopes for a request. Over HTTP it is 403 with a challenge, 401 for an anonymous caller. */
export class InsufficientScope extends ProtocolError {
  /** Everything that the request needs, also what the caller has. */
  readonly scopes: readonly string[];
  readonly isAnonymous: boolean;

  constructor(what: string, scopes: readonly string[], { caller, scopesFrom }: Authentication) {
    const held = caller.scopes.length === 0 ? "no scope" : caller.scopes.join(", ").slice(0, maxHeld);
    const isAnonymous = caller.kind === "anonymous";
    const facts = isAnonymous ? "the request came without a credential" : `${scopesFrom ?? "the caller"} has ${held}`;
    super(
      RpcCode.Request,
      `${what} needs the ${scopes.length === 1 ? "scope" : "scopes"} ${scopes.join(", ")}; ${facts}. Send a credential that has ${scopes.length === 1 ? "it" : "all of them"}.`,
      { error: "insufficient_scope", scopes },
    );
    this.scopes = scopes;
    this.isAnonymous = isAnonymous;
  }
}
