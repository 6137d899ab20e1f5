import { nextTick } from "node:process";
import type { Writable } from "node:stream";
import type { Clock } from "../clock.ts";
import { weigh } from "../mcp/outbound.ts";
import { type Message, writeAnything } from "../wire/message.ts";
import { partBytes, unread } from "./door-limits.ts";

type Id = string | number;

/** Writes, and calls back when that is done, or failed. */
export type WritePart = (part: string | Uint8Array, onWritten?: (error?: Error | null) => void) => boolean;

export interface OutboxOptions {
  readonly output: Writable;
  /** Writes to `output` even where its own `write` was taken away from others. */
  readonly write: WritePart;
  readonly clock: Clock;
  /** Nothing more can be written: something failed, or the client does not read. */
  readonly onBroken: (error: Error) => void;
  /** The client has to read before it is read from, and it has read. */
  readonly onBehind: () => void;
  readonly onDrain: () => void;
}

/**
 * What leaves by one connection, a line each. Messages made in one turn of the event loop leave in one write: under
 * load a write is most of what a call costs. A large one leaves in parts, the next when the last was taken; what waits
 * stays an object until its turn comes, so that no more than one message is there as text.
 */
export class Outbox {
  readonly #options: OutboxOptions;
  #waiting: Message[] = [];
  /** How many of them have left. */
  #at = 0;
  /** What is left of a message that leaves in parts. */
  #rest: Buffer | undefined;
  #restId: Id | undefined;
  #isFlushDue = false;
  #waitsForDrain = false;
  /** How often the client has taken what was waiting. */
  #partsTaken = 0;
  #isClosed = false;
  #behindSince = 0;
  #cancelLook: (() => void) | undefined;
  /** Those who want to know when the answer to a request has left. */
  readonly #watched = new Map<Id, ((hasLeft: boolean) => void)[]>();
  /** Answers that are about to be written. */
  #untaken: Id[] = [];

  constructor(options: OutboxOptions) {
    this.#options = options;
  }

  /** Much is there that the client has not read. */
  get isUnread(): boolean {
    return this.#waitsForDrain && this.#hasMuch;
  }

  /** See `Outbound`. */
  get untakenPart(): number | undefined {
    return this.#waitsForDrain ? this.#partsTaken : undefined;
  }

  push(message: Message): void {
    this.#waiting.push(message);
    if (this.#waitsForDrain || this.#isFlushDue) return;
    this.#isFlushDue = true;
    // After everything that is answered in the same turn, and before anything else.
    nextTick(this.#flush);
  }

  /** Resolves when the answer to a request has left; false when the connection ended before. */
  whenLeft(id: Id): Promise<boolean> {
    if (this.#isClosed) return Promise.resolve(false);
    return new Promise((resolve) => this.#watched.set(id, [...(this.#watched.get(id) ?? []), resolve]));
  }

  /** Nobody waits for this answer any longer. */
  forget(id: Id): void {
    for (const tell of this.#watched.get(id) ?? []) tell(true);
    this.#watched.delete(id);
  }

  /**
   * No more is taken, and what waits is written, whether the client keeps up or not: it is the last. Where nothing can
   * be written, that was all.
   */
  close(canWrite: boolean): void {
    if (canWrite) this.#flushAll();
    this.#end();
  }

  #flushAll(): void {
    try {
      for (let part = this.#nextPart(); part !== undefined && !this.#isClosed; part = this.#nextPart())
        this.#options.write(part);
      this.#taken();
    } catch {
      // Whoever waits for what is left is told that it has not left.
    }
  }

  #end(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#cancelLook?.();
    this.#waiting = [];
    this.#rest = undefined;
    for (const tell of [...this.#watched.values()].flat()) tell(false);
    this.#watched.clear();
  }

  #break(error: Error): void {
    this.#end();
    this.#options.onBroken(error);
  }

  readonly onDrain = (): void => {
    if (!this.#waitsForDrain) return;
    this.#waitsForDrain = false;
    this.#partsTaken += 1;
    this.#flush();
    if (!this.#waitsForDrain) this.#options.onDrain();
  };

  readonly #flush = (): void => {
    this.#isFlushDue = false;
    try {
      while (!this.#waitsForDrain && !this.#isClosed) {
        const part = this.#nextPart();
        if (part === undefined) return;
        this.#waitsForDrain = !this.#write(part);
        if (this.#waitsForDrain) {
          this.#behindSince = this.#options.clock.monotonic();
          this.#options.onBehind();
          this.#lookWhetherRead();
        }
      }
    } catch (error) {
      this.#break(error as Error);
    }
  };

  /**
   * Whoever waits for an answer to leave hears when it has been written: a pipe takes it, and may say afterwards that
   * nobody reads.
   */
  #write(part: string | Uint8Array): boolean {
    if (this.#untaken.length === 0) return this.#options.write(part);
    const ids = this.#untaken.splice(0);
    return this.#options.write(part, (error) => {
      if (error == null) for (const id of ids) this.forget(id);
    });
  }

  /** Small messages together, a large one bit by bit. */
  #nextPart(): string | Uint8Array | undefined {
    if (this.#rest !== undefined) return this.#nextOfRest(this.#rest);
    const texts: string[] = [];
    let length = 0;
    while (this.#at < this.#waiting.length && length < partBytes) {
      const message = this.#waiting[this.#at] as Message;
      const id = message.method === undefined ? (message.id ?? undefined) : undefined;
      const text = toLine(message);
      this.#next();
      if (text.length > partBytes) {
        this.#rest = Buffer.from(text);
        this.#restId = id;
        if (texts.length === 0) return this.#nextOfRest(this.#rest);
        break;
      }
      texts.push(text);
      length += text.length;
      if (id !== undefined && this.#watched.size > 0) this.#untaken.push(id);
    }
    if (texts.length === 0) return undefined;
    return texts.length === 1 ? texts[0] : texts.join("");
  }

  #nextOfRest(rest: Buffer): Uint8Array {
    const part = rest.subarray(0, partBytes);
    this.#rest = rest.length > partBytes ? rest.subarray(partBytes) : undefined;
    if (this.#rest === undefined && this.#restId !== undefined) this.#untaken.push(this.#restId);
    return part;
  }

  #next(): void {
    this.#at += 1;
    if (this.#at < this.#waiting.length) {
      // What has left is not kept, and a list of many is not shifted for each of them.
      (this.#waiting as (Message | undefined)[])[this.#at - 1] = undefined;
      return;
    }
    this.#waiting = [];
    this.#at = 0;
  }

  #taken(): void {
    for (const id of this.#untaken) this.forget(id);
    this.#untaken = [];
  }

  /** Who leaves much unread, and takes nothing of it for a while, does not read. */
  #lookWhetherRead(afterMs = unread.ms): void {
    const { clock } = this.#options;
    this.#cancelLook ??= clock.after(afterMs, () => {
      this.#cancelLook = undefined;
      if (this.#isClosed || !this.#waitsForDrain) return;
      const leftMs = this.#behindSince + unread.ms - clock.monotonic();
      if (leftMs <= 0 && this.#hasMuch)
        this.#break(new Error(`The client has read nothing for ${unread.ms / 1000} s.`));
      else this.#lookWhetherRead(leftMs > 0 ? leftMs : unread.ms);
    });
  }

  get #hasMuch(): boolean {
    const { writableLength } = this.#options.output;
    return (
      this.#rest !== undefined ||
      writableLength + weigh(this.#waiting.slice(this.#at), unread.bytes - writableLength) >= unread.bytes
    );
  }
}

function toLine(message: Message): string {
  const text = writeAnything(message);
  return text === undefined ? "" : `${text}\n`;
}
