import type { Caller } from "../command/context.ts";

export { callerKey } from "../task/callers.ts";
export type { Caller };

export const localUser: Caller = { kind: "local" };
export const anonymous: Caller = { kind: "anonymous" };

/** False for callers who cannot be told apart: they reach tasks by id alone. */
export function isKnown(caller: Caller): boolean {
  return caller.kind !== "anonymous";
}
