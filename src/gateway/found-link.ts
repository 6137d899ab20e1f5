import type { StreamMark } from "../client/connection/http-link.ts";
import type { Id } from "../wire/in-flight.ts";
import type { Message } from "../wire/message.ts";
import type { SendOptions } from "../wire/peer.ts";
import { ConnectionError } from "../wire/peer-errors.ts";
import { HttpUpstream } from "./http-upstream.ts";
import { openSse } from "./sse-link.ts";
import type { SessionMark, UpstreamEvents, UpstreamLink, UrlAddress } from "./upstream-link.ts";

/** What a server of 2024-11-05 says to a message that is posted to its stream. */
const strange: ReadonlySet<number | undefined> = new Set([400, 404, 405]);

/**
 * A server that may speak Streamable HTTP or the transport before it, found out as
 * https://modelcontextprotocol.io/specification/2025-03-26/basic/transports#backwards-compatibility says.
 */
export class FoundLink implements UpstreamLink {
  readonly kind = "url";
  readonly #address: UrlAddress;
  readonly #events: UpstreamEvents;
  readonly #http: HttpUpstream;
  #link: UpstreamLink;
  #isClosed = false;

  constructor(address: UrlAddress, events: UpstreamEvents) {
    this.#address = address;
    this.#events = events;
    this.#http = new HttpUpstream(address, events);
    this.#link = this.#http;
  }

  begin(revision: string): Promise<void> {
    return this.#link.begin(revision);
  }

  async send(message: Message, options?: SendOptions): Promise<void> {
    const isHello = message.method === "initialize" && this.#link === this.#http;
    try {
      return await this.#link.send(message, options);
    } catch (error) {
      if (!isHello || !(error instanceof ConnectionError) || !strange.has(error.status)) throw error;
      const older = await openSse(this.#address, this.#events).catch(() => Promise.reject(error));
      if (this.#isClosed) await older.close();
      this.#link = older;
      await this.#http.close();
      await older.send(message, options);
    }
  }

  drop(id: Id): void {
    this.#link.drop(id);
  }

  resume(message: Message, mark: StreamMark): Promise<void> {
    return this.#http.resume(message, mark);
  }

  get session(): SessionMark | undefined {
    return this.#link === this.#http ? this.#http.session : undefined;
  }

  sendIn(session: SessionMark, message: Message): Promise<void> {
    return this.#http.sendIn(session, message);
  }

  keepSession(): () => void {
    return this.#http.keepSession();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([this.#link.close(), this.#http.close()]);
  }
}
