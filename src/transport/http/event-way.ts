import type { Authentication } from "../../auth/authentication.ts";
import type { Way } from "../../mcp/incoming.ts";
import type { Outbound } from "../../mcp/outbound.ts";
import { type Message, writeAnything } from "../../wire/message.ts";
import { eventTail, toEventHead, toEventText, toMarker } from "../../wire/sse.ts";
import { partBytes } from "../door-limits.ts";
import type { Replay } from "./replay.ts";

/** How long a client that lost its connection is asked to wait before it comes back. */
const retryMs = 1_000;

export interface EventWayOptions {
  readonly id: string;
  /** Keeps what was sent, for a client that comes back; undefined where nobody can. */
  readonly replay?: Replay;
  readonly headers?: Readonly<Record<string, string>>;
  /** The client takes an event that says nothing, as the first. */
  readonly isMarked?: boolean;
  /** It was answered, or will not be. */
  readonly onOver?: () => void;
  /** The credential of the request: it may grant other scopes than the one that the session began with. */
  readonly authentication?: Authentication;
}

/** What events leave by: an exchange of ours, or one of another server. */
export interface EventCarrier extends Outbound {
  readonly isOver: boolean;
  readonly isStream: boolean;
  readonly exchange: AbortSignal | undefined;
  readonly arrivedAt?: number | undefined;
  /** Events follow; `first` leaves with the head. */
  openStream(headers: Readonly<Record<string, string>> | undefined, first: string): void;
  /** Events that are all there is. */
  answerStream(headers: Readonly<Record<string, string>>, text: string): void;
  /** `tail` follows the text. */
  write(text: string, tail?: string): void;
  end(): void;
}

/**
 * The events that belong to one request, or to none, of a client before 2026-07-28. What is there in the same turn
 * leaves in one write; after that the stream is opened, so that the client knows that it is heard. A client that lost
 * its connection has another carry them on.
 */
export class EventWay implements Way {
  readonly id: string;
  readonly #options: EventWayOptions;
  #carrier: EventCarrier | undefined;

  constructor(options: EventWayOptions, carrier?: EventCarrier) {
    this.id = options.id;
    this.#options = options;
    this.#carrier = carrier;
  }

  get authentication(): Authentication | undefined {
    return this.#options.authentication;
  }

  /** Of requests alone, and theirs has been carried from the first. */
  get outbound(): Outbound {
    return this.#carrier as EventCarrier;
  }

  get exchange(): AbortSignal | undefined {
    return this.#carrier?.exchange;
  }

  /** When the request arrived that this stream answers; undefined for a stream that answers none. */
  get arrivedAt(): number | undefined {
    return this.#carrier?.arrivedAt;
  }

  /** Somebody reads what is sent. */
  get isCarried(): boolean {
    return this.#carrier !== undefined && !this.#carrier.isOver;
  }

  /** The head, unless everything has been said already. */
  open(): void {
    if (this.#carrier?.isStream === false) this.#carrier.openStream(this.#options.headers, this.#marker());
  }

  send(message: Message): void {
    const { replay, onOver } = this.#options;
    const isAnswer = message.method === undefined;
    const text = writeAnything(message);
    if (text === undefined) return;
    const carrier = this.#carrier;
    const isOpen = carrier?.isStream === true;
    const marker = isOpen ? "" : this.#marker();
    const id = replay?.keep(this.id, text, isAnswer ? (message.id ?? undefined) : undefined);
    if (text.length > partBytes && carrier !== undefined) this.#sendLarge(carrier, text, marker + toEventHead(id));
    else this.#sendSmall(carrier, marker + toEventText(text, id), isAnswer);
    if (!isAnswer) return;
    carrier?.end();
    onOver?.();
  }

  /** Its data is never copied into one text with what stands around it. */
  #sendLarge(carrier: EventCarrier, text: string, head: string): void {
    if (carrier.isStream) carrier.write(head);
    else carrier.openStream(this.#options.headers, head);
    carrier.write(text, eventTail);
  }

  #sendSmall(carrier: EventCarrier | undefined, event: string, isAnswer: boolean): void {
    const { headers } = this.#options;
    if (carrier?.isStream === true) carrier.write(event);
    else if (isAnswer) carrier?.answerStream(headers ?? {}, event);
    else carrier?.openStream(headers, event);
  }

  drop(): void {
    this.open();
    this.end();
    this.#options.onOver?.();
  }

  hangUp(): void {
    if (this.#options.isMarked !== true) return;
    this.open();
    this.end();
  }

  /** Goes on where the client was, after what it missed, here or elsewhere. */
  carryOn(carrier: EventCarrier, lastEventId: string, missedElsewhere = ""): void {
    this.#carrier = carrier;
    carrier.openStream(this.#options.headers, missedElsewhere + this.missedSince(lastEventId));
  }

  /** The events after this one, as they are sent. */
  missedSince(lastEventId: string): string {
    const missed = [...(this.#options.replay?.after(lastEventId) ?? [])];
    return missed.map(({ eventId, text }) => toEventText(text, eventId)).join("");
  }

  end(): void {
    this.#carrier?.end();
  }

  #marker(): string {
    const { replay, isMarked } = this.#options;
    return isMarked === true && replay !== undefined ? toMarker(replay.mark(this.id), retryMs) : "";
  }
}
