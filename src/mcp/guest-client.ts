import { type Caller, callerKey, isKnown } from "../command/caller.ts";
import type { Json } from "../wire/json.ts";
import type { MessageExtra } from "./guest-host.ts";
import type { AskLimits } from "./request.ts";

const cure = "say of which request it is (relatedRequestId), or make a server for each session: durable(() => server)";
/** What a tool is told that asks without its request. */
export const nobody = `Nobody is there to be asked, or it is not clear who; ${cure}.`;
/** What the log is told then. */
export const unclear = `a server that many share said something outside of its request while it worked for several, so nobody was told; ${cure}`;

/** Whom a guest works for: what it tells and asks goes there. */
export interface GuestClient {
  readonly signal: AbortSignal;
  /** Equal for all that one caller asks whom we know; of strangers, for what one session of theirs asks. */
  readonly who: string;
  readonly caller?: Caller;
  readonly hangUp: (() => void) | undefined;
  notify(method: string, params: Json): void;
  ask(method: string, params: Json, options: AskLimits): Promise<unknown>;
}

/** What the SDKs hand their tools of a request beside what is in it. */
export function extraOf(client: GuestClient | undefined): MessageExtra | undefined {
  if (client === undefined) return undefined;
  const { hangUp, caller } = client;
  if (hangUp === undefined && caller?.kind !== "token") return undefined;
  return {
    ...(hangUp !== undefined && { closeSSEStream: hangUp }),
    ...(caller?.kind === "token" && { authInfo: toAuthInfo(caller) }),
  };
}

/** Who asks, in the SDKs' words. The token itself stays with whoever checked it. */
function toAuthInfo({
  client,
  subject,
  issuer,
  scopes,
}: Caller & { kind: "token" }): NonNullable<MessageExtra["authInfo"]> {
  return { token: "", clientId: client, scopes: [...(scopes ?? [])], extra: { subject, issuer } };
}

export function whoAsks(caller: Caller, session: string | undefined): string {
  return session === undefined || isKnown(caller) ? callerKey(caller) : session;
}
