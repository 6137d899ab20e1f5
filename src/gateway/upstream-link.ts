import type { StreamMark } from "../client/connection/http-link.ts";
import type { Id } from "../wire/in-flight.ts";
import type { Message } from "../wire/message.ts";
import type { Link } from "../wire/peer.ts";
import type { ConnectionError } from "../wire/peer-errors.ts";

/** Messages to and from one upstream, whatever carries them. */

/** A session of a server's, for whoever comes back to it. */
export type SessionMark = Pick<StreamMark, "session" | "revision">;

export interface CommandAddress {
  readonly kind: "command";
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
  /** All of it: nothing of this process's own environment is added. */
  readonly env: Readonly<Record<string, string>>;
}

export interface UrlAddress {
  readonly kind: "url";
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Undefined: found out. */
  readonly transport: "http" | "sse" | undefined;
  readonly authorizer: Authorizer | undefined;
}

/** Where an upstream is, with every reference to a variable or a file resolved. */
export type UpstreamAddress = CommandAddress | UrlAddress;

/** Has tokens for an upstream that wants one. */
export interface Authorizer {
  /** The value of `Authorization` for the next request; undefined where there is none yet. */
  header(): Promise<string | undefined>;
  /**
   * The upstream has refused a request with 401, or with 403 and `insufficient_scope`, and this `WWW-Authenticate`. True
   * when there is another token now, and the request is worth sending once more. Throws a ConnectionError that says what
   * a person has to do. `sent` is the header that was refused, so that of two requests only the first is worth a new
   * token; undefined where there was none.
   */
  refused(challenge: string | undefined, sent: string | undefined): Promise<boolean>;
}

export interface UpstreamEvents {
  /** `about`: the request on whose stream it came, where that is known. */
  onMessage(message: Message, about: Id | undefined): void;
  /** Called once; nothing comes after it. */
  onClose(why: ConnectionError): void;
  /** What it writes to its stderr, in the pieces it comes in. */
  onStderr?(text: string): void;
  /** Something odd that is worth a line of a log; each kind is said once. */
  onNotice?(sentence: string): void;
  /** The stream of a request can be taken up from here, see `resume`. */
  onMark?(id: Id, mark: StreamMark): void;
  /** Its session was lost and another one begun: what was set in it (a level of logs, subscriptions) is to be set again. */
  onRenewed?(): void;
}

export interface UpstreamLink extends Link {
  /** Of a server that was started for it. */
  readonly pid?: number | undefined;
  /** Ends the stream of a request of ours, which takes it back since 2026-07-28 over HTTP. */
  drop(id: Id): void;
  /**
   * Takes up the stream of a request that an earlier link has sent, before a crash of ours, in that link's session. The
   * request has the id it had then, so ids must not begin anew with each link. Undefined where nothing can be taken up.
   */
  resume?(message: Message, mark: StreamMark): Promise<void>;
  /** The session that the server has begun with us; undefined where it has none. */
  readonly session?: SessionMark | undefined;
  /** Sends a request in the session of an earlier link. Undefined where there is no such thing. */
  sendIn?(session: SessionMark, message: Message): Promise<void>;
  /** The session does not end with the link, until called off: whoever comes after us goes on in it. */
  keepSession?(): () => void;
}

export interface LinkOptions {
  /** Where commands are put on record, so that `endOrphans` finds them when this process is killed. */
  readonly recordFolder?: string | undefined;
}

export type OpenUpstreamLink = (
  address: UpstreamAddress,
  events: UpstreamEvents,
  options?: LinkOptions,
) => Promise<UpstreamLink>;
