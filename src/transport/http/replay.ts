import { RpcCode } from "../../errors.ts";
import { writeMessage } from "../../wire/message.ts";
import { replayBytes } from "../door-limits.ts";

type Id = string | number;

interface Kept {
  readonly number: number;
  /** Monotonic. */
  readonly at: number;
  readonly streamId: string;
  /** The message, as JSON. */
  readonly text: string;
  /** The request that it answers. */
  readonly answerTo: Id | undefined;
  readonly bytes: number;
  /** An error in place of an answer that is no longer kept, or an answer that is shorter than such an error. */
  readonly isWord?: boolean;
  readonly owner: Replay;
}

/** What an event takes beside its text. */
const eventBytes = 400;

/** What is left of an answer that is kept no longer: whoever comes back for it has to know that it will not come. */
const noLongerKept =
  "The answer is not kept any longer, so it cannot be sent again. What was not delivered has become a task: ask for its result (task_result or task_list shows it); or call again, where that is safe.";

/** What all sessions keep for clients that lost their connections: the oldest of all goes first. */
export class ReplayMemory {
  readonly #mostBytes: number;
  readonly #events = new Set<Kept>();
  #bytes = 0;

  constructor(mostBytes = replayBytes.all) {
    this.#mostBytes = mostBytes;
  }

  /**
   * Drops messages that are older than `before`: a client that comes back does so within seconds. Of an answer a word is
   * left, until it is older than `wordsBefore`.
   */
  sweep(before: number, wordsBefore = Number.NEGATIVE_INFINITY): void {
    // What is put back while this goes on stands behind the others.
    for (const event of [...this.#events]) {
      if (event.at < wordsBefore) event.owner.forget(event);
      else if (event.at < before && event.isWord !== true) event.owner.expire(event);
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
export class Replay {
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

  /** An id for an event that says nothing: it only gives the client one to come back with. */
  mark(streamId: string): string {
    this.#lastNumber += 1;
    return toEventId(this.#lastNumber, streamId);
  }

  /** Keeps a message, which may be an answer; the id of its event. */
  keep(streamId: string, text: string, answerTo?: Id): string {
    const eventId = this.mark(streamId);
    this.#put({
      number: this.#lastNumber,
      at: this.#monotonic(),
      streamId,
      text,
      answerTo,
      bytes: text.length + eventBytes,
      owner: this,
    });
    // The memory of all may have let go of it already.
    for (const oldest of this.#kept.values()) {
      if (this.#bytes <= replayBytes.session) break;
      this.drop(oldest);
    }
    return eventId;
  }

  /** The stream on which an event was sent; undefined where there was none. */
  streamOf(eventId: string): string | undefined {
    return this.#parse(eventId)?.streamId;
  }

  /** What came after an event on its stream, as far as it is kept. */
  *after(eventId: string): Iterable<{ readonly eventId: string; readonly text: string }> {
    const after = this.#parse(eventId);
    for (const [number, { streamId, text }] of this.#kept)
      if (after !== undefined && number > after.number && streamId === after.streamId)
        yield { eventId: toEventId(number, streamId), text };
  }

  /** The session has ended. */
  clear(): void {
    for (const event of this.#kept.values()) this.forget(event);
  }

  /** Its time is over; of an answer a word is left. */
  expire(event: Kept): void {
    const word = toWord(event);
    this.forget(event);
    // An answer that is no longer than the word about it stays itself.
    if (word !== undefined) this.#put(event.text.length > replayBytes.stub ? word : { ...event, isWord: true });
  }

  /**
   * Frees memory: an answer larger than its error is replaced by that error. Any other message, and an error that
   * replaced an answer, is deleted.
   */
  drop(event: Kept): void {
    this.forget(event);
    // Without this check the callers, which drop the oldest event until the rest fits, would never end: an error with a
    // long ID is itself larger than `replayBytes.stub`.
    if (event.isWord === true) return;
    const word = event.text.length > replayBytes.stub ? toWord(event) : undefined;
    // An answer is the last event of its stream, so the error can be added as the newest event.
    if (word !== undefined) this.#put(word);
  }

  #put(event: Kept): void {
    this.#kept.set(event.number, event);
    this.#bytes += event.bytes;
    this.#memory.add(event);
  }

  /** Nothing of it is left. */
  forget(event: Kept): void {
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

function toWord(event: Kept): Kept | undefined {
  const { answerTo } = event;
  if (answerTo === undefined) return undefined;
  const text = writeMessage({ id: answerTo, error: { code: RpcCode.Internal, message: noLongerKept } });
  return { ...event, text, bytes: text.length + eventBytes, isWord: true };
}

function toEventId(number: number, streamId: string): string {
  return `${number}.${streamId}`;
}
