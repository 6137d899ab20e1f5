import { type Caller, callerKey, isKnown } from "../command/caller.ts";
import { ProtocolError, RpcCode } from "../errors.ts";
import type { Json } from "../wire/json.ts";
import type { MessageExtra } from "./guest-host.ts";
import type { AskLimits, ClientConnection } from "./request.ts";

const cure =
  "pass `relatedRequestId`, or hand durable() a function that makes a new server for each session: durable(() => makeServer())";
/** The error that a shared server gets when it asks without its request. */
export const nobody = `Nobody is there to be asked, or it is not clear who; ${cure}.`;
/** What the log says then. */
export const unclear = `a server that several clients share said something outside of its request while it worked for several, so no client got it; ${cure}`;
/** The error that an instance gets which was made only to list its tools. */
export const noSession =
  "Nobody is there to be asked: this instance of the server was made only to list its tools, and has no client.";

/** What a client before 2026-07-28 has to declare before it may be asked. */
const capabilityOf: Readonly<Record<string, "elicitation" | "sampling" | "roots">> = {
  "elicitation/create": "elicitation",
  "sampling/createMessage": "sampling",
  "roots/list": "roots",
};

/**
 * Asks a client outside of any request of its own. Over HTTP before 2026-07-28 the question waits until the client has
 * opened its stream: what is sent before that is lost.
 */
export async function askOutside(
  connection: ClientConnection,
  ...[method, params, options]: Parameters<GuestClient["ask"]>
): Promise<unknown> {
  if (!connection.canPush) await streamOpened(connection, options.signal);
  return await connection.ask(method, params, options);
}

function streamOpened(connection: ClientConnection, withdrawn: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const over = AbortSignal.any([withdrawn, connection.closed]);
    const onAbort = () => {
      stop();
      reject(over.reason);
    };
    const stop = connection.onStream(() => {
      stop();
      over.removeEventListener("abort", onAbort);
      resolve();
    });
    if (over.aborted) onAbort();
    else over.addEventListener("abort", onAbort, { once: true });
  });
}

/** The error that a shared server gets when its only client is another than the local user's. */
const foreignRoots =
  "A server that clients share works in the roots of the local user alone; hand durable() a function that makes a new server for each session: durable(() => makeServer()).";

/**
 * Whether a shared server may take the roots of this caller: they decide in which folders it works for everybody, and a
 * caller over HTTP could name any.
 */
export function mayGiveRoots({ caller }: Pick<GuestClient, "caller">): boolean {
  return caller?.kind === "local";
}

/** Throws the error that a shared server gets which asks for the roots of such a caller, outside of a call of theirs. */
export function refuseForeignRoots(method: string, client: Pick<GuestClient, "caller">): void {
  if (method === "roots/list" && !mayGiveRoots(client)) throw new ProtocolError(RpcCode.Method, foreignRoots);
}

/** Throws the error that a server gets which asks a client for what the client has not declared. */
export function refuseUndeclared(method: string, { client }: Pick<ClientConnection, "client">): void {
  const capability = capabilityOf[method];
  if (capability === undefined || client.capabilities[capability] !== undefined) return;
  throw new ProtocolError(
    RpcCode.Method,
    `The client has not declared the capability \`${capability}\`, which ${method} needs.`,
  );
}

/** Whom a guest works for: what it tells and asks goes there. */
export interface GuestClient {
  readonly signal: AbortSignal;
  /** Equal for all that one caller asks whom we know; of strangers, for what one session of theirs asks. */
  readonly who: string;
  readonly caller?: Caller | undefined;
  readonly hangUp: (() => void) | undefined;
  notify(method: string, params: Json): void;
  ask(method: string, params: Json, options: AskLimits): Promise<unknown>;
}

/** What the SDKs hand their tools of a request beside what is in it. */
export function extraOf(client: GuestClient | undefined): MessageExtra | undefined {
  if (client === undefined) return undefined;
  const { hangUp, caller } = client;
  const authInfo = toAuthInfo(caller);
  if (hangUp === undefined && authInfo === undefined) return undefined;
  return {
    ...(hangUp !== undefined && { closeSSEStream: hangUp }),
    ...(authInfo !== undefined && { authInfo }),
  };
}

/**
 * The caller as the SDKs name one; undefined for the local user and anonymous callers. The token itself stays with the
 * code that checked it.
 */
function toAuthInfo(caller: Caller | undefined): MessageExtra["authInfo"] {
  if (caller === undefined || caller.kind === "local" || caller.kind === "anonymous") return undefined;
  const { kind, id, name, client = "", scopes, groups } = caller;
  const extra = { kind, id, ...(name !== undefined && { name }), groups: [...groups] };
  return { token: "", clientId: client, scopes: [...scopes], extra };
}

export function whoAsks(caller: Caller, session: string | undefined): string {
  return session === undefined || isKnown(caller) ? callerKey(caller) : session;
}
