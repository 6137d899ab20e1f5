import type { GuestEra } from "../mcp/guest-host.ts";
import type { ClientCapabilities } from "../mcp/request.ts";
import { fieldsOf, type Json } from "../wire/json.ts";

/**
 * What an upstream is told that our client can do. Before 2026-07-28 that is said once, and whoever can be asked at
 * whichever door can be asked by it; since then each request says what its own client has declared.
 */
export function declaredTo(
  { elicitation, sampling, roots }: ClientCapabilities | Json,
  era: GuestEra = "legacy",
): Json {
  const asked = era === "legacy" ? { form: {}, url: {}, ...fieldsOf(elicitation) } : elicitation;
  return {
    ...(asked !== undefined && { elicitation: asked }),
    ...(sampling !== undefined && { sampling: fieldsOf(sampling) }),
    ...(roots !== undefined && { roots: fieldsOf(roots) }),
  };
}
