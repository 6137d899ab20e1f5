export interface BearerChallengeParameters {
  readonly error?: "invalid_token" | "insufficient_scope" | undefined;
  readonly description?: string | undefined;
  /** All scopes that are needed. */
  readonly scope?: readonly string[] | undefined;
  /** Where the metadata of the server is (RFC 9728, 5.1). */
  readonly metadataUrl?: string | undefined;
}

/** The value of `WWW-Authenticate` for a 401 or 403 (RFC 6750, 3). */
export function challenge({ error, description, scope = [], metadataUrl }: BearerChallengeParameters): string {
  const parameters = {
    error,
    error_description: description,
    scope: scope.length === 0 ? undefined : scope.join(" "),
    resource_metadata: metadataUrl,
  };
  const written = Object.entries(parameters).flatMap(([name, value]) =>
    value === undefined ? [] : `${name}="${quotable(value)}"`,
  );
  return written.length === 0 ? "Bearer" : `Bearer ${written.join(", ")}`;
}

/** Text without what RFC 6750 does not allow in these parameters: quotes, backslashes, and all but ASCII. */
function quotable(text: string): string {
  return text
    .replaceAll("…", "...")
    .replaceAll(/["\\]/g, "'")
    .replaceAll(/[^\x20-\x7e]/g, "?");
}
