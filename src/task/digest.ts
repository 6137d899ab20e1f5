import { createHash } from "node:crypto";

/** Equal for equal calls, whatever the order of their keys. */
export function digestOf(toolName: string, input: unknown): string {
  return createHash("sha256")
    .update(JSON.stringify([toolName, sorted(input)]))
    .digest("base64url");
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  return Object.entries(value)
    .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
    .map(([key, item]) => [key, sorted(item)]);
}
