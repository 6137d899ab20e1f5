import type { IssuerSettings } from "./issuers.ts";
import { builtInScopes } from "./rights.ts";

/** Where clients look for the metadata of a protected resource (RFC 9728, 3). */
const wellKnown = "/.well-known/oauth-protected-resource";

export interface ResourceFacts {
  /** The URL of the MCP endpoint as clients know it. */
  readonly publicUrl: string;
  readonly issuers: readonly IssuerSettings[];
  readonly name: string;
  /** Scopes of commands that clients may ask for, beside those that are built in. */
  readonly scopes?: readonly string[];
}

/** The paths at which the metadata is served: with and without the path of the endpoint. */
export function metadataPaths(publicUrl: string): readonly string[] {
  return [...new Set([wellKnown, `${wellKnown}/mcp`, new URL(metadataUrl(publicUrl)).pathname])];
}

/** The address of the metadata, as a challenge names it. */
export function metadataUrl(publicUrl: string): string {
  const { origin, pathname } = new URL(publicUrl);
  return `${origin}${wellKnown}${pathname.replace(/\/$/, "")}`;
}

/** The metadata of the server (RFC 9728, 2). */
export function resourceMetadata({ publicUrl, issuers, name, scopes = [] }: ResourceFacts): object {
  const requested = [...new Set([...requestableScopes(issuers), ...(mayIssueScopes(issuers) ? scopes : [])])];
  return {
    resource: publicUrl.replace(/\/$/, ""),
    authorization_servers: issuers.map(({ issuer }) => issuer),
    ...(requested.length > 0 && { scopes_supported: requested }),
    bearer_methods_supported: ["header"],
    resource_name: name,
  };
}

/**
 * The scopes that a client asks its issuer for when it has none; empty where no issuer can issue them. Clients ask for
 * all that is named, so the scopes of operators are not among them.
 */
export function requestableScopes(issuers: readonly IssuerSettings[]): readonly string[] {
  return mayIssueScopes(issuers) ? [builtInScopes.read, builtInScopes.call] : [];
}

/** An issuer with `grant` cannot put our scopes into its tokens, and may refuse a request that names them. */
function mayIssueScopes(issuers: readonly IssuerSettings[]): boolean {
  return issuers.some(({ grant = [] }) => grant.length === 0);
}
