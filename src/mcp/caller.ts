import type { AuthInfo, ServerContext } from "@modelcontextprotocol/server";

/** Who asks. What one caller started, no other may see. */
export type Caller = { readonly kind: "local" } | { readonly kind: "anonymous" };

export const localUser: Caller = { kind: "local" };
export const anonymous: Caller = { kind: "anonymous" };

/** The form in which an HTTP door hands its caller through the SDK. The token itself stays at the door. */
export function toAuthInfo(caller: Caller): AuthInfo {
  return { token: "", clientId: caller.kind, scopes: [], extra: { caller } };
}

/** Names the caller of a request: pipes belong to the local user, HTTP says who it is. */
export function callerOf(ctx: ServerContext): Caller {
  const isPipe = ctx.http === undefined;
  if (isPipe) return localUser;
  return (ctx.http?.authInfo?.extra?.caller as Caller | undefined) ?? anonymous;
}
