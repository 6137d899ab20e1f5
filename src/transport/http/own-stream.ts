import type { Way } from "../../mcp/incoming.ts";
import type { Outbound } from "../../mcp/outbound.ts";
import { type SessionNotes, streamNote } from "../../mcp/shared.ts";
import type { Message } from "../../wire/message.ts";
import { EventWay } from "./event-way.ts";
import type { FarLines } from "./far-lines.ts";
import type { HttpExchange } from "./http-exchange.ts";
import { HttpRefusal } from "./http-refusal.ts";
import type { Replay } from "./replay.ts";
import type { SessionPost } from "./session-post.ts";

/** The stream for messages of our own; those of requests have ids that nobody has chosen. */
const ownStream = "_GET_stream";

interface OwnStreamOptions {
  readonly sessionId: string;
  readonly post: SessionPost;
  readonly lines: FarLines;
  readonly replay: Replay;
  readonly headers: Readonly<Record<string, string>>;
  /** It has been opened, here or elsewhere. */
  readonly onOpen: () => void;
}

/**
 * The stream of a session for what belongs to no request: one, whichever server its client has opened it at. What is to
 * be said while another holds it goes to that one.
 */
export class OwnStream implements Way {
  readonly #options: OwnStreamOptions;
  readonly #events: EventWay;
  /** Other servers that hold it, the one that opened it last at the end. */
  readonly #holders = new Set<string>();
  #isOpening = false;
  /** What came while it was being opened. */
  #early: Message[] = [];
  readonly exchange = undefined;

  constructor(options: OwnStreamOptions) {
    this.#options = options;
    const { replay, headers, post } = options;
    this.#events = new EventWay({ id: `${post.node}.${ownStream}`, replay, headers });
  }

  /** Never asked for: what leaves by it answers nobody. */
  get outbound(): Outbound {
    return this.#events.outbound;
  }

  get isHeldHere(): boolean {
    return this.#events.isCarried;
  }

  /** Another server that holds it. */
  get holder(): string | undefined {
    return [...this.#holders].at(-1);
  }

  get isOpen(): boolean {
    return this.isHeldHere || this.holder !== undefined;
  }

  send(message: Message): void {
    const { post, sessionId } = this.#options;
    // It may have been opened elsewhere a moment ago.
    if (!this.isHeldHere) post.catchUp();
    const { holder } = this;
    if (this.isHeldHere || holder === undefined) this.#events.send(message);
    else void post.tell(sessionId, { kind: "say", message }, holder);
  }

  /** Another server has something to say. */
  sendFor(message: Message): void {
    if (this.#isOpening && !this.isHeldHere) this.#early.push(message);
    else this.#events.send(message);
  }

  /** What is on record of who holds it. */
  read(notes: SessionNotes): void {
    for (const name of Object.keys(notes))
      if (name.startsWith(streamNote)) this.#holders.add(name.slice(streamNote.length));
  }

  /** `from`: the last event that its client has seen, of which server. */
  async open(exchange: HttpExchange, from: { readonly lastEventId: string; readonly node: string } | undefined) {
    if (this.isHeldHere || this.#isOpening) throw onlyOne();
    this.#isOpening = true;
    try {
      await this.#open(exchange, from);
    } finally {
      this.#isOpening = false;
      this.#early = [];
    }
  }

  async #open(exchange: HttpExchange, from: { readonly lastEventId: string; readonly node: string } | undefined) {
    const { post } = this.#options;
    const isElsewhere = from !== undefined && from.node !== post.node;
    const node = isElsewhere ? from.node : this.holder;
    exchange.onClose(() => void this.#note(post.node, false));
    const missed = node === undefined ? "" : await this.#askFor(node, isElsewhere ? from.lastEventId : undefined);
    if (exchange.isOver) return;
    // Who has something to say from now on knows to whom.
    await this.#note(post.node, true);
    if (exchange.isOver) return;
    this.#events.carryOn(exchange, from?.lastEventId ?? "", missed);
    for (const message of this.#early) this.#events.send(message);
    this.#options.onOpen();
  }

  /** What was sent there meanwhile. Throws when it is still held there. */
  async #askFor(node: string, lastEventId: string | undefined): Promise<string> {
    const line = await this.#options.lines.want(this.#options.sessionId, node, lastEventId);
    if (line !== undefined) return line.close();
    // Who does not answer is gone, and its streams with it.
    if (this.#holders.has(node)) await this.#note(node, false);
    return "";
  }

  /** Gives another server, to which the client has come back, what was missed here. */
  handOver(to: string, line: string, lastEventId: string | undefined): void {
    const { post, sessionId } = this.#options;
    if (this.isHeldHere) throw onlyOne();
    const text = lastEventId === undefined ? "" : this.#events.missedSince(lastEventId);
    void post.tell(sessionId, { kind: "events", line, text, isLast: true }, to);
    // What comes next is for the other one to send.
    this.#holders.add(to);
  }

  /** Another server holds it from now on, or no longer. */
  heed(by: string, isOpen: boolean): void {
    this.#holders.delete(by);
    if (!isOpen || by === this.#options.post.node) return;
    this.#holders.add(by);
    this.#options.onOpen();
  }

  /** Others no longer count on us. */
  async leave(): Promise<void> {
    if (this.isHeldHere) await this.#note(this.#options.post.node, false);
  }

  end(): void {
    this.#events.end();
  }

  async #note(by: string, isOpen: boolean): Promise<void> {
    const { post, sessionId } = this.#options;
    if (by !== post.node) this.heed(by, isOpen);
    await post.note(sessionId, { [`${streamNote}${by}`]: isOpen ? true : null }, { kind: "stream", by, isOpen });
  }
}

/** Whose event it is, by its id, and whether it was one of a session's own stream; undefined for no id of ours. */
export function originOfEvent(eventId: string): { readonly node: string; readonly isOwn: boolean } | undefined {
  const [, node, rest] = /^\d{1,15}\.([\da-f-]{13})\.(.+)$/.exec(eventId) ?? [];
  return node === undefined ? undefined : { node, isOwn: rest === ownStream };
}

function onlyOne(): HttpRefusal {
  return new HttpRefusal(409, "Conflict: Only one SSE stream is allowed per session");
}
