import type { EventStore, JSONRPCMessage } from "@modelcontextprotocol/server";

/** How much a session keeps for a client that lost its connection; the newest message is kept whatever its size. */
const maxKeptChars = 1024 * 1024;

interface Kept {
  readonly streamId: string;
  readonly message: JSONRPCMessage;
  readonly chars: number;
}

/** The last messages of one session, sent again to a client that comes back with Last-Event-ID. */
export class Replay implements EventStore {
  /** By number, oldest first. */
  readonly #kept = new Map<number, Kept>();
  #chars = 0;
  #lastNumber = 0;

  async storeEvent(streamId: string, message: JSONRPCMessage): Promise<string> {
    this.#lastNumber += 1;
    // The first event of a stream is empty: it only gives the client an id to come back with.
    const isMarker = !("jsonrpc" in message);
    if (!isMarker) this.#keep({ streamId, message, chars: roughSize(message) });
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

  #keep(event: Kept): void {
    for (const [number, { chars }] of this.#kept) {
      if (this.#chars + event.chars <= maxKeptChars) break;
      this.#kept.delete(number);
      this.#chars -= chars;
    }
    this.#kept.set(this.#lastNumber, event);
    this.#chars += event.chars;
  }

  #parse(eventId: string): { number: number; streamId: string } | undefined {
    const [, digits, streamId] = /^(\d{1,15})\.(.+)$/.exec(eventId) ?? [];
    const number = Number(digits);
    return streamId !== undefined && number >= 1 && number <= this.#lastNumber ? { number, streamId } : undefined;
  }
}

/** What a message weighs, near enough, without writing it out once more: nearly all of a large one is in its texts. */
function roughSize(message: JSONRPCMessage): number {
  const parts = "result" in message ? ((message.result.content ?? []) as { text?: string; data?: string }[]) : [];
  const note = "method" in message && message.method === "notifications/message" ? String((message.params as { data?: unknown }).data).length : 0;
  return Array.isArray(parts) ? parts.reduce((sum, part) => sum + 2 * ((part.text?.length ?? 0) + (part.data?.length ?? 0)), 500 + note) : 500;
}

function toEventId(number: number, streamId: string): string {
  return `${number}.${streamId}`;
}
