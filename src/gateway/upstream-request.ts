import type { StreamMark } from "../client/connection/http-link.ts";
import type { GuestClient } from "../mcp/guest-client.ts";
import type { Id } from "../wire/in-flight.ts";
import { fieldsOf, type Json } from "../wire/json.ts";
import type { Message } from "../wire/message.ts";
import { metaKeys, toEnvelope } from "../wire/request-envelope.ts";
import { isModern } from "../wire/revisions.ts";
import { ownInfo, type UpstreamHello } from "./upstream-greeting.ts";
import type { SessionMark, UpstreamLink } from "./upstream-link.ts";

/** What is said beside a request to an upstream. */
export interface UpstreamRequest {
  readonly client?: GuestClient | undefined;
  /** Since 2026-07-28: what this request's client can do. */
  readonly capabilities?: Json;
  readonly headers?: Readonly<Record<string, string>>;
  /** The level from which on its log lines are wanted. */
  readonly logLevel?: string | undefined;
  /** One that no other request has had, so that its stream can be taken up. */
  readonly id?: Id | undefined;
  /** In the session of an earlier connection. */
  readonly session?: SessionMark | undefined;
  /** Instead of sending it, the stream of an earlier connection is taken up from here. */
  readonly from?: StreamMark | undefined;
  readonly onMark?: ((mark: StreamMark) => void) | undefined;
  /** True for a request that goes on without its client: somebody comes back to it. */
  readonly goesOn?: () => boolean;
}

/** Sends a request, or takes up what is left of it. */
export function sendOver(
  link: UpstreamLink,
  message: Message,
  { from, session, headers }: UpstreamRequest,
): Promise<void> {
  if (from !== undefined && link.resume !== undefined) return link.resume(message, from);
  if (session !== undefined && link.sendIn !== undefined) return link.sendIn(session, message);
  return link.send(message, { headers });
}

/** As `finally` and `then` in one: every turn that an answer waits is a turn that its client waits. */
export function whenOver<T, R>(answer: Promise<T>, over: () => void, read: (answered: T) => R): Promise<R> {
  return answer.then(
    (answered) => {
      over();
      return read(answered);
    },
    (error: unknown) => {
      over();
      throw error;
    },
  );
}

/** Who asks is us, whoever asked us; what a client says to everybody behind us is passed on. */
export function dress(params: Json, hello: UpstreamHello | undefined, request: UpstreamRequest): Json {
  if (hello === undefined || !isModern(hello.revision)) return params;
  const { capabilities = {}, logLevel } = request;
  const level = logLevel === undefined ? {} : { [metaKeys.logLevel]: logLevel };
  return { ...params, _meta: { ...fieldsOf(params._meta), ...toEnvelope(ownInfo, capabilities), ...level } };
}
