import { parseScopes } from "../../auth/rights.ts";

/** What an upstream says when it refuses a request: `WWW-Authenticate`, of the scheme Bearer. */
export interface BearerChallenge {
  /** Where it says who gives out its tokens. */
  readonly resourceMetadata: string | undefined;
  readonly scopes: readonly string[] | undefined;
  /** E.g. `invalid_token`, `insufficient_scope`. */
  readonly error: string | undefined;
}

/** A scheme, or a parameter of the one before it. */
const part = /[\s,]*([\w!#$%&'*+.^`|~-]+)(?:\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]*)))?/gy;
const maxLength = 8_192;

/** Reads what is there; nothing of a header that says nothing of Bearer. */
export function parseChallenge(header: string | undefined): BearerChallenge {
  const said = new Map<string, string>();
  let scheme = "";
  for (const [, name = "", quoted, plain] of (header ?? "").slice(0, maxLength).matchAll(part)) {
    const value = quoted?.replaceAll(/\\(.)/g, "$1") ?? plain;
    if (value === undefined) scheme = name.toLowerCase();
    else if (scheme === "bearer" && !said.has(name.toLowerCase())) said.set(name.toLowerCase(), value);
  }
  const scope = said.get("scope");
  return {
    resourceMetadata: said.get("resource_metadata"),
    scopes: scope === undefined ? undefined : parseScopes(scope),
    error: said.get("error"),
  };
}
