import type { IssuerSettings } from "./issuers.ts";
import { builtInScopes } from "./rights.ts";

/** Where clients look for the metadata of a protected resource (RFC 9728, 3). */
export const wellKnownMetadata = "/.well-known/oauth-protected-resource";

/** This server as a protected resource of its issuers: what clients are told so that they can get a token. */
export interface ProtectedResource {
  /** The address of the metadata, as a challenge names it. */
  readonly metadataUrl: string;
  /** The paths at which the metadata is served: with and without the path of the endpoint. */
  readonly metadataPaths: readonly string[];
  readonly metadata: Readonly<Record<string, unknown>>;
  /**
   * The scopes that a client asks its issuer for when it has none; empty where no issuer can issue them. Clients ask for
   * all that is named, so the scopes of operators are not among them.
   */
  readonly scopes: readonly string[];
}

export interface ResourceFacts {
  /** The URL of the MCP endpoint as clients know it. */
  readonly publicUrl: string;
  readonly issuers: readonly IssuerSettings[];
  readonly name: string;
}

export function describeResource({ publicUrl, issuers, name }: ResourceFacts): ProtectedResource {
  const { origin, pathname } = new URL(publicUrl);
  const path = `${wellKnownMetadata}${pathname.replace(/\/$/, "")}`;
  // An issuer with `grant` cannot put our scopes into its tokens, and may refuse a request that names them.
  const issuesScopes = issuers.some(({ grant = [] }) => grant.length === 0);
  const scopes = issuesScopes ? [builtInScopes.read, builtInScopes.call] : [];
  return {
    metadataUrl: `${origin}${path}`,
    metadataPaths: [...new Set([wellKnownMetadata, `${wellKnownMetadata}/mcp`, path])],
    metadata: {
      resource: publicUrl.replace(/\/$/, ""),
      authorization_servers: issuers.map(({ issuer }) => issuer),
      ...(scopes.length > 0 && { scopes_supported: scopes }),
      bearer_methods_supported: ["header"],
      resource_name: name,
    },
    scopes,
  };
}
