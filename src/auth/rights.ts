import type { Caller } from "../command/caller.ts";

/** The scopes of Meanwhile itself. Commands have their own beside them. */
export const builtInScopes = {
  read: "meanwhile:read",
  call: "meanwhile:call",
  metrics: "meanwhile:metrics",
  admin: "meanwhile:admin",
} as const;

export type Right = keyof typeof builtInScopes;

const { read, call, metrics, admin } = builtInScopes;

/** The scopes of which each grants a right. */
const grantedBy: Readonly<Record<Right, readonly string[]>> = {
  read: [read, call, admin],
  call: [call, admin],
  metrics: [metrics, admin],
  admin: [admin],
};

/**
 * True for a caller who has the right. The local user has all of them; anonymous callers may read and call. So may the
 * callers of an app, unless their scopes name one of Meanwhile's.
 */
export function hasRight({ kind, scopes }: Caller, right: Right): boolean {
  if (kind === "local") return true;
  const isOpen = kind === "anonymous" || (kind === "app" && !scopes.some((scope) => scope.startsWith("meanwhile:")));
  if (isOpen) return right === "read" || right === "call";
  return grantedBy[right].some((scope) => scopes.includes(scope));
}

/** The scopes in a text, separated by spaces, each once. A word that cannot be a scope is left out. */
export function parseScopes(text: string): string[] {
  return onlyScopes(text.split(" "));
}

/** The values that are scopes (RFC 6749, 3.3), each once. A text with a space is none: it is not two of them. */
export function onlyScopes(values: readonly unknown[]): string[] {
  const isScope = (value: unknown): value is string =>
    typeof value === "string" && /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(value);
  return [...new Set(values.filter(isScope))];
}
