import { createHash } from "node:crypto";
import type { Origin } from "../command/context.ts";

/**
 * Equal for equal calls, whatever the order of their keys. A relative path means another file elsewhere, and another
 * door may do more.
 */
export function digestOf(toolName: string, input: unknown, origin?: Origin): string {
  return createHash("sha256")
    .update(
      JSON.stringify([toolName, sorted(input), ...(origin === undefined ? [] : [origin.door, origin.folder ?? null])]),
    )
    .digest("base64url");
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  return Object.entries(value)
    .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
    .map(([key, item]) => [key, sorted(item)]);
}
