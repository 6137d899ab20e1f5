import type { EventStore, JSONRPCMessage } from "@modelcontextprotocol/server";
import { internalErrorCode } from "../errors.ts";
import { weigh } from "../mcp/outbound.ts";
import { replayBytes } from "./limits.ts";

interface Kept {
  readonly number: number;
  /** Monotonic. */
  readonly at: number;
  readonly streamId: string;
  readonly message: JSONRPCMessage;
  readonly bytes: number;
  readonly owner: Replay;
}

/** What is left of an answer that is kept no longer: whoever comes back for it has to know that it will not come. */
const noLongerKept =
  "The answer is not kept any longer, so it cannot be sent again. What was not delivered has become a task: ask for its result (task_list shows it); or call again, where that is safe.";

/** What all sessions keep for clients that lost their connections: the oldest of all goes first. */
export class ReplayMemory {
  readonly #mostBytes: number;
  readonly #events = new Set<Kept>();
  #bytes = 0;

  constructor(mostBytes = replayBytes.all) {
    this.#mostBytes = mostBytes;
  }

  /** Drops what is older: whoever comes back does so within seconds. */
  sweep(before: number): void {
    for (const oldest of this.#events) {
      if (oldest.at >= before) continue;
      oldest.owner.expire(oldest);
    }
  }

  get bytes(): number {
    return this.#bytes;
  }

  add(event: Kept): void {
    this.#events.add(event);
    this.#bytes += event.bytes;
    for (const oldest of this.#events) {
      if (this.#bytes <= this.#mostBytes) break;
      oldest.owner.drop(oldest);
    }
  }

  remove(event: Kept): void {
    if (this.#events.delete(event)) this.#bytes -= event.bytes;
  }
}

/** The last messages of one session, sent again to a client that comes back with Last-Event-ID. */
export class Replay implements EventStore {
  readonly #memory: ReplayMemory;
  readonly #monotonic: () => number;
  /** By number, oldest first. */
  readonly #kept = new Map<number, Kept>();
  #bytes = 0;
  #lastNumber = 0;

  constructor(memory = new ReplayMemory(), monotonic: () => number = () => 0) {
    this.#memory = memory;
    this.#monotonic = monotonic;
  }

  async storeEvent(streamId: string, message: JSONRPCMessage): Promise<string> {
    this.#lastNumber += 1;
    // The first event of a stream is empty: it only gives the client an id to come back with.
    const isMarker = !("jsonrpc" in message);
    if (!isMarker) this.#keep(streamId, message);
    return toEventId(this.#lastNumber, streamId);
  }

  async getStreamIdForEventId(eventId: string): Promise<string | undefined> {
    return this.#parse(eventId)?.streamId;
  }

  async replayEventsAfter(eventId: string, { send }: { send: (eventId: string, message: JSONRPCMessage) => Promise<void> }): Promise<string> {
    const after = this.#parse(eventId);
    if (after === undefined) throw new Error("Last-Event-ID names no event of this session.");
    for (const [number, { streamId, message }] of this.#kept) {
      if (number > after.number && streamId === after.streamId) await send(toEventId(number, streamId), message);
    }
    return after.streamId;
  }

  /** The session has ended. */
  clear(): void {
    for (const event of this.#kept.values()) this.#forget(event);
  }

  /** Its time is over; of an answer a word is left for as long as the session is. */
  expire(event: Kept): void {
    const stub = event.bytes > replayBytes.stub ? toStub(event.message) : undefined;
    this.#forget(event);
    if (stub !== undefined) this.#put({ ...event, at: Number.POSITIVE_INFINITY, message: stub, bytes: replayBytes.stub });
  }

  /** Makes room: of an answer a word is left, of anything else nothing. */
  drop(event: Kept): void {
    this.#forget(event);
    const stub = toStub(event.message);
    // An answer is the last of its stream, so a word that comes after all the others comes in its place.
    if (stub !== undefined && event.bytes > replayBytes.stub) this.#put({ ...event, message: stub, bytes: replayBytes.stub });
  }

  #keep(streamId: string, message: JSONRPCMessage): void {
    const event = { number: this.#lastNumber, at: this.#monotonic(), streamId, message, bytes: weigh(message), owner: this };
    this.#put(event);
    // The memory of all may have let go of it already.
    for (const oldest of this.#kept.values()) {
      if (this.#bytes <= replayBytes.session) break;
      this.drop(oldest);
    }
  }

  #put(event: Kept): void {
    this.#kept.set(event.number, event);
    this.#bytes += event.bytes;
    this.#memory.add(event);
  }

  #forget(event: Kept): void {
    if (this.#kept.get(event.number) !== event) return;
    this.#kept.delete(event.number);
    this.#bytes -= event.bytes;
    this.#memory.remove(event);
  }

  #parse(eventId: string): { number: number; streamId: string } | undefined {
    const [, digits, streamId] = /^(\d{1,15})\.(.+)$/.exec(eventId) ?? [];
    const number = Number(digits);
    return streamId !== undefined && number >= 1 && number <= this.#lastNumber ? { number, streamId } : undefined;
  }
}

function toStub(message: JSONRPCMessage): JSONRPCMessage | undefined {
  if ("method" in message || message.id === undefined) return undefined;
  return { jsonrpc: "2.0", id: message.id, error: { code: internalErrorCode, message: noLongerKept } };
}

function toEventId(number: number, streamId: string): string {
  return `${number}.${streamId}`;
}
