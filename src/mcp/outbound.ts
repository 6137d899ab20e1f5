import { getHeapStatistics } from "node:v8";
import type { Clock } from "../clock.ts";
import type { EndedCall } from "../task/ended-call.ts";
import { isTerminal, type Task } from "../task/task.ts";
import { sizeOf } from "../task/task-outcome.ts";
import { isLarge, weigh, weighsLarge } from "../task/weigh.ts";
import type { ClientRequest } from "./request.ts";

export { isLarge, weigh, weighsLarge };

/** How answers leave by one connection. */
export interface Outbound {
  readonly backlog: Backlog;
  /** Resolves when the answer to a request has left, or is wanted no longer; false when the connection ended before. */
  whenLeft(requestId: string | number): Promise<boolean>;
  /**
   * The number of the part that was written and that the client has not taken. Undefined while nothing waits for the
   * client.
   */
  readonly untakenPart?: number | undefined;
  /** Closes the connection because its client reads too slowly. */
  closeSlow?(): void;
}

/**
 * Results that are on their way by one connection, as JSON: three of the largest, so that the next is ready when one
 * has left.
 */
const backlogBytes = 32 * 1024 * 1024;

/** An eighth of the heap's limit, in which V8 counts the young generation too: of 128 MB of old space it is 40 MiB. */
const heapShareBytes = getHeapStatistics().heap_size_limit / 8;

/**
 * Results that wait for such room, of all connections, as their commands made them: written out one takes three times
 * as much. More than that wait on the disk.
 */
const waitingBytes = heapShareBytes;
let waiting = 0;

/** What may be on its way at a time, in bytes; whoever comes later waits for room, in turn. */
export class Backlog {
  readonly #mostBytes: number;
  readonly #waiting = new Set<{ readonly bytes: number; readonly begin: () => void }>();
  #bytes = 0;

  constructor(mostBytes = backlogBytes) {
    this.#mostBytes = mostBytes;
  }

  get isEmpty(): boolean {
    return this.#bytes === 0;
  }

  /** What is larger than all the room there is has it to itself. */
  hasRoom(bytes: number): boolean {
    return this.#waiting.size === 0 && this.#fits(bytes);
  }

  /** Resolves when there is room, with what gives it back; with nothing to give back when the signal comes first. */
  async take(bytes: number, signal?: AbortSignal): Promise<() => void> {
    if (signal?.aborted === true) return () => undefined;
    if (this.hasRoom(bytes)) this.#bytes += bytes;
    else if (!(await this.#wait(bytes, signal))) return () => undefined;
    return () => {
      this.#bytes -= bytes;
      this.#beginNext();
    };
  }

  #wait(bytes: number, signal: AbortSignal | undefined): Promise<boolean> {
    return new Promise((resolve) => {
      const entry = { bytes, begin: () => resolve(true) };
      this.#waiting.add(entry);
      signal?.addEventListener("abort", () => {
        if (!this.#waiting.delete(entry)) return;
        resolve(false);
        this.#beginNext();
      });
    });
  }

  #fits(bytes: number): boolean {
    return this.#bytes === 0 || this.#bytes + bytes <= this.#mostBytes;
  }

  #beginNext(): void {
    for (const next of this.#waiting) {
      if (!this.#fits(next.bytes)) return;
      this.#waiting.delete(next);
      this.#bytes += next.bytes;
      next.begin();
    }
  }
}

/** An answer takes this many times the bytes of its result: the result itself, its JSON, and what is sent of that. */
const serializedFactor = 3;
/**
 * While others wait for room, connections are looked at this often. A connection whose client has taken no part (1 MiB)
 * since so many looks is slow. A process that does not run makes no looks: its clients have nothing to read meanwhile.
 */
const lookMs = 500;
const slowLooks = 4;

interface HeldRoom {
  /** Undefined for a result that is written to the disk. */
  readonly outbound: Outbound | undefined;
  /** What its client had not taken at the last look. */
  untakenPart: number | undefined;
  /** How many looks have seen the same. */
  looks: number;
}

/**
 * The bytes of all results of a server that are written out, until their answers have left. While others wait for room,
 * the connection whose client has taken nothing for longest is closed, after 2 s: the client counts as lost, and its
 * call becomes a task.
 */
export class ResultRoom {
  readonly #clock: Clock;
  readonly #backlog: Backlog;
  readonly #held = new Set<HeldRoom>();
  #waiting = 0;
  #cancelLook: (() => void) | undefined;

  constructor(clock: Clock, mostBytes: number) {
    this.#clock = clock;
    // A process with a small heap has less room than the setting says.
    this.#backlog = new Backlog(Math.min(mostBytes, heapShareBytes));
  }

  hasRoom(bytes: number): boolean {
    return this.#backlog.hasRoom(bytes * serializedFactor);
  }

  /** Resolves when there is room, with what gives it back. */
  async take(bytes: number, outbound: Outbound | undefined, signal: AbortSignal): Promise<() => void> {
    const mustWait = !this.hasRoom(bytes);
    if (mustWait) this.#beginWait();
    const giveBack = await this.#backlog.take(bytes * serializedFactor, signal);
    if (mustWait) this.#endWait();
    if (signal.aborted) return giveBack;
    const held: HeldRoom = { outbound, untakenPart: undefined, looks: 0 };
    this.#held.add(held);
    return () => {
      this.#held.delete(held);
      giveBack();
    };
  }

  #beginWait(): void {
    this.#waiting += 1;
    this.#cancelLook ??= this.#clock.after(lookMs, () => this.#look());
  }

  #endWait(): void {
    this.#waiting -= 1;
    if (this.#waiting > 0) return;
    this.#cancelLook?.();
    this.#cancelLook = undefined;
  }

  #look(): void {
    this.#cancelLook = this.#clock.after(lookMs, () => this.#look());
    for (const held of this.#held) {
      const part = held.outbound?.untakenPart;
      held.looks = part === undefined ? 0 : part === held.untakenPart ? held.looks + 1 : 1;
      held.untakenPart = part;
    }
    const [slowest] = [...this.#held].toSorted((a, b) => b.looks - a.looks);
    if (slowest === undefined || slowest.looks < slowLooks) return;
    slowest.looks = 0;
    slowest.outbound?.closeSlow?.();
  }
}

type Asking = Pick<ClientRequest, "id" | "outbound" | "signal" | "connection">;

/**
 * One answer's place in a backlog: waited for before the result is written out, where there is none, and given back
 * when the answer has left.
 */
export class BacklogPlace {
  readonly #request: Asking;
  readonly #outbound: Outbound;
  readonly #results: ResultRoom;
  #left: AbortController | undefined;
  #giveBack: (() => void) | undefined;
  /** Lets the next result be written out for the disk. */
  #leaveAside: (() => void) | undefined;
  #isUsed = false;

  constructor(request: Asking, results: ResultRoom) {
    this.#request = request;
    this.#outbound = request.outbound;
    this.#results = results;
  }

  hasRoom(bytes: number): boolean {
    return this.#giveBack !== undefined || (this.#outbound.backlog.hasRoom(bytes) && this.#results.hasRoom(bytes));
  }

  get #signal(): AbortSignal {
    this.#left ??= new AbortController();
    // A request that is taken back while it waits has no answer, and so needs no room.
    return AbortSignal.any([this.#left.signal, this.#request.signal]);
  }

  /**
   * Waits with a result that is not written out yet; undefined when it may be. Where too much waits already, results are
   * written out one after the other, for the disk.
   */
  wait(data: unknown): Promise<void> | undefined {
    if (this.#giveBack !== undefined || this.#leaveAside !== undefined) return undefined;
    // Whoever asks again until there is room would ask for ever.
    if (this.#signal.aborted) return undefined;
    const bytes = weigh(data);
    if (!isLarge(bytes)) return undefined;
    if (waiting + bytes > waitingBytes && !this.hasRoom(bytes)) return this.enterAside(bytes);
    waiting += bytes;
    return this.take(bytes).finally(() => (waiting -= bytes));
  }

  /** Resolves when there is room to write a result out for the disk. */
  async enterAside(bytes: number): Promise<void> {
    if (this.#leaveAside !== undefined) return;
    const signal = this.#signal;
    const giveBack = await this.#results.take(bytes, undefined, signal);
    // The call may have become a task since the room was granted: nobody would release it.
    if (signal.aborted) giveBack();
    else this.#leaveAside = giveBack;
  }

  leaveAside(): void {
    this.#leaveAside?.();
    this.#leaveAside = undefined;
  }

  async take(bytes: number): Promise<void> {
    if (this.#giveBack !== undefined) return;
    const signal = this.#signal;
    const giveBackOwn = await this.#outbound.backlog.take(bytes, signal);
    const giveBackShared = await this.#results.take(bytes, this.#outbound, signal);
    const giveBack = () => {
      giveBackShared();
      giveBackOwn();
    };
    // Room that came at the moment of leaving is given back as well.
    if (signal.aborted) giveBack();
    else this.#giveBack = giveBack;
  }

  /** Resolves as the answer leaves; the place is given back then. */
  async whenLeft(): Promise<boolean> {
    this.#isUsed = true;
    const { id, signal, connection } = this.#request;
    const takenBack = Promise.withResolvers<boolean>();
    // Who takes a request back gets no answer. Of a connection that is closed its door knows what has left.
    const onAbort = () => void (connection.closed.aborted || takenBack.resolve(true));
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
    const hasLeft = await Promise.race([this.#outbound.whenLeft(id), takenBack.promise]);
    signal.removeEventListener("abort", onAbort);
    this.#giveBackAll();
    return hasLeft;
  }

  /** The request is answered with something else. */
  leaveUnlessUsed(): void {
    if (this.#isUsed) return;
    this.#left?.abort();
    this.#giveBackAll();
  }

  #giveBackAll(): void {
    this.leaveAside();
    this.#giveBack?.();
    this.#giveBack = undefined;
  }
}

/** Reads a task that is answered with. What finds no room is let go, and read again when there is some. */
export async function readWithRoom(request: Asking, results: ResultRoom, read: () => Promise<Task>): Promise<Task> {
  let task: Task | undefined = await read();
  const place = new BacklogPlace(request, results);
  const bytes = isTerminal(task) ? sizeOf(task.outcome) : 0;
  if (!isLarge(bytes)) return task;
  if (!place.hasRoom(bytes)) task = undefined;
  await place.take(bytes);
  void place.whenLeft();
  return task ?? (await read());
}

/**
 * What finds no room on its way to the client waits on the disk; and what is on record stays there until the answer has
 * left.
 */
export async function makeRoom(ending: EndedCall, bytes: number, request: ClientRequest, place: BacklogPlace) {
  const { signal, door, client } = request;
  // What was taken back is answered by nothing, so there is nothing to wait for.
  if (signal.aborted) return ending.finish(!ending.isOnRecord || !isLost(request));
  if (!ending.isOnRecord && !isLarge(bytes)) return ending.finish(true);
  if (isLarge(bytes) && !place.hasRoom(bytes)) {
    await place.enterAside(bytes);
    await ending.setAside();
  }
  place.leaveAside();
  if (isLarge(bytes)) await place.take(bytes);
  let isThere = false;
  void place.whenLeft().then((hasLeft) => {
    // On 2026-07-28 over HTTP a client that is lost has cancelled.
    ending.finish(isThere && (hasLeft || (door === "http" && client.isModern)));
  });
  await ending.recall();
  isThere = true;
}

/** False for one that has cancelled, as a client of 2026-07-28 over HTTP does that is lost. */
function isLost({ door, client, connection, exchange }: ClientRequest): boolean {
  return door === "stdio" ? connection.closed.aborted : !client.isModern && exchange?.aborted === true;
}
