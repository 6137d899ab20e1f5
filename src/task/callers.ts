import type { Caller } from "../command/context.ts";

/** Callers who cannot be told apart must not be given each other's runs. */
export const anonymous = "anonymous";

/** What a caller's tasks are kept under: equal for the same caller and no other. */
export function callerKey(caller: Caller): string {
  return caller.kind === "token"
    ? `token:${JSON.stringify([caller.issuer, caller.client, caller.subject])}`
    : caller.kind;
}

const local: Caller = Object.freeze({ kind: "local" });
const nobody: Caller = Object.freeze({ kind: "anonymous" });

/** The caller of such a key; what is no key of ours is nobody we know. */
export function toCaller(key: string): Caller {
  if (key === "local") return local;
  if (!key.startsWith("token:")) return nobody;
  const [issuer, client, subject] = JSON.parse(key.slice("token:".length)) as [string, string, string];
  return { kind: "token", issuer, client, subject };
}

/** Whose something is, in a sentence to the caller of such a key. */
export function nameOf(key: string): string {
  return key === anonymous ? "callers without a credential" : "yours";
}
