import type { Socket } from "node:net";
import type { Clock } from "../../clock.ts";
import { type Caller, callerKey, isKnown, whose } from "../../command/caller.ts";
import { RequestError } from "../../errors.ts";
import { Backlog } from "../../mcp/outbound.ts";
import { limitsOf, tooManyRequests } from "../door-limits.ts";
import { Pace } from "./pace.ts";

/** Connections that have not said who they are: beyond these, those that have been silent for a while are closed. */
const maxUnknown = 250;
/** A client sends its first request at once, so who has been silent this long is nobody's client. */
const silentMs = 1_000;
/** Beyond these the oldest are closed, silent or not. */
const maxUnknownAtOnce = 2_000;
/** Requests on one connection that wait for each other's answers; clients of MCP send one. */
const maxPipelined = 16;

/** Less of a body is a matter of how many requests there may be, and not worth counting. */
const smallBytes = 64 * 1024;

/** What came by a connection; one that was never added is not counted. */
interface FromSocket {
  readonly socket?: Socket | undefined;
}

/** Something that ends. */
interface Over {
  onClose(listener: () => void): void;
}

interface Connection {
  readonly socket: Socket;
  readonly openedAt: number;
  /** Who sent its last request; undefined until there was one that was let in. */
  caller: string | undefined;
  requests: number;
}

/** Who holds how much of the HTTP door, so that what one caller holds keeps no other out. */
export class Connections {
  readonly #clock: Clock;
  /** Oldest first. */
  readonly #open = new Map<Socket, Connection>();
  readonly #requests = new Map<string, number>();
  readonly #streams = new Map<string, number>();
  readonly #taskIds = new Map<string, number>();
  readonly #bodies = new Map<string, number>();
  readonly #paces = new Map<string, Pace>();
  readonly #backlogs = new Map<string, Backlog>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Somebody has connected, and nobody knows who. */
  add(socket: Socket): void {
    this.#open.set(socket, { socket, openedAt: this.#clock.monotonic(), caller: undefined, requests: 0 });
    socket.once("close", () => this.#open.delete(socket));
    const unknown = [...this.#open.values()].filter(({ caller }) => caller === undefined);
    const now = this.#clock.monotonic();
    const isTooOld = ({ openedAt, requests }: Connection) => requests === 0 && now - openedAt >= silentMs;
    if (unknown.length > maxUnknown) unknown.find(isTooOld)?.socket.destroy();
    if (unknown.length > maxUnknownAtOnce) unknown[0]?.socket.destroy();
  }

  /**
   * A request has come. False when its connection has sent too many without waiting for an answer; it is closed, then.
   */
  begin({ socket }: FromSocket, over: Over): boolean {
    const connection = socket && this.#open.get(socket);
    if (connection === undefined) return true;
    connection.requests += 1;
    over.onClose(() => (connection.requests -= 1));
    if (connection.requests <= maxPipelined) return true;
    connection.socket.destroy();
    return false;
  }

  /** The request is this caller's. Refuses what is beyond its share; otherwise counts it until its response is over. */
  admit({ socket }: FromSocket, over: Over, caller: Caller): void {
    const key = callerKey(caller);
    const connection = socket && this.#open.get(socket);
    if (connection !== undefined && connection.caller !== key) {
      connection.caller = key;
      this.#makeRoom(key, limitsOf(caller).connections);
    }
    const running = this.#requests.get(key) ?? 0;
    if (running >= limitsOf(caller).requests) throw tooManyRequests(caller, running);
    count(this.#requests, key, 1);
    over.onClose(() => count(this.#requests, key, -1));
  }

  /**
   * Who has too many loses one that is idle; where all are in use there are too many requests, and those are refused.
   */
  #makeRoom(caller: string, most: number): void {
    const own = [...this.#open.values()].filter((other) => other.caller === caller);
    if (own.length > most) own.find(({ requests }) => requests === 0)?.socket.destroy();
  }

  /** A stream that stays open until its response is over. */
  holdStream(caller: Caller, over: Over): void {
    const key = callerKey(caller);
    const open = this.#streams.get(key) ?? 0;
    if (open >= limitsOf(caller).streams)
      throw new RequestError(
        "busy",
        `There are ${open} open streams of ${whose(callerKey(caller))} already, the most there may be; close one, then open another.`,
      );
    hold(this.#streams, key, 1, over);
  }

  /** Tasks that are listened to until the response is over. */
  holdTaskIds(caller: Caller, ids: number, over: Over): void {
    const key = callerKey(caller);
    const held = this.#taskIds.get(key) ?? 0;
    const most = limitsOf(caller).taskIds;
    if (held + ids > most)
      throw new RequestError(
        "busy",
        `There are ${held} tasks that are listened to by ${whose(callerKey(caller))}, of ${most} at a time; listen to fewer.`,
      );
    hold(this.#taskIds, key, ids, over);
  }

  /** So much of a body has come; it counts until the response is over. */
  holdBody(caller: Caller, bytes: number, over: Over): void {
    if (bytes <= smallBytes) return;
    const key = callerKey(caller);
    if ((this.#bodies.get(key) ?? 0) + bytes > limitsOf(caller).bodyBytes)
      throw new RequestError(
        "busy",
        `What ${isKnown(caller) ? "you have" : "callers without a credential have"} sent and not been answered is as much as it may be; wait for an answer.`,
      );
    hold(this.#bodies, key, bytes, over);
  }

  /** What is on its way to this caller, on all its connections. */
  backlogOf(caller: Caller): Backlog {
    const key = callerKey(caller);
    const backlog = this.#backlogs.get(key) ?? new Backlog(limitsOf(caller).backlogBytes);
    this.#backlogs.set(key, backlog);
    return backlog;
  }

  /** Resolves when it is this message's turn; undefined when that is now. */
  pace(caller: Caller, bytes: number): Promise<void> | undefined {
    const key = callerKey(caller);
    let pace = this.#paces.get(key);
    if (pace === undefined) {
      pace = new Pace(limitsOf(caller).messagesATurn, () => this.#paces.delete(key));
      this.#paces.set(key, pace);
    }
    return pace.enter(bytes);
  }
}

function hold(counts: Map<string, number>, key: string, by: number, over: Over): void {
  count(counts, key, by);
  over.onClose(() => count(counts, key, -by));
}

function count(counts: Map<string, number>, key: string, by: number): void {
  const left = (counts.get(key) ?? 0) + by;
  if (left > 0) counts.set(key, left);
  else counts.delete(key);
}
