import type { AuthInfo } from "@modelcontextprotocol/server";
import type { Caller } from "../command/context.ts";
import type { Outbound } from "./outbound.ts";

export { callerKey } from "../task/callers.ts";
export type { Caller };

export const localUser: Caller = { kind: "local" };
export const anonymous: Caller = { kind: "anonymous" };

/** False for callers who cannot be told apart: they reach tasks by id alone. */
export function isKnown(caller: Caller): boolean {
  return caller.kind !== "anonymous";
}

/** The form in which an HTTP door hands its caller, and the way of its answer, through the SDK. The token itself stays at the door. */
export function toAuthInfo(caller: Caller, outbound?: Outbound): AuthInfo {
  return { token: "", clientId: caller.kind, scopes: [], extra: { caller, ...(outbound !== undefined && { outbound }) } };
}

/** The caller that a door handed over; pipes belong to the local user. */
export function fromAuthInfo(authInfo: AuthInfo | undefined): Caller | undefined {
  return authInfo?.extra?.caller as Caller | undefined;
}
