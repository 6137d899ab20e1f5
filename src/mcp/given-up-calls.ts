import type { Clock } from "../clock.ts";
import type { GivenUpCall, LearnedLimits, Transport } from "../host/learned-limits.ts";

/** Calls that are given up within this time were given up together, by one person or one timeout. */
const togetherMs = 1_000;

/** What clients of one host gave up together. */
interface Group {
  readonly cancelled: GivenUpCall[];
  /** Calls whose HTTP streams the client closed. */
  readonly left: GivenUpCall[];
  /** HTTP streams that clients closed: those of calls, and others. */
  closedStreams: number;
  readonly cancelTimer: () => void;
}

/**
 * Collects the calls that clients of a host give up, and passes them on when a second has passed. HTTP streams that are
 * closed together are a client that ends, so the calls on them say nothing about its host.
 */
export class GivenUpCalls {
  readonly #clock: Clock;
  readonly #limits: LearnedLimits;
  readonly #groups = new Map<string, Group>();
  #isClosed = false;

  constructor(clock: Clock, limits: LearnedLimits) {
    this.#clock = clock;
    this.#limits = limits;
  }

  noteCancelled(host: string, transport: Transport, call: GivenUpCall): void {
    if (!this.#isClosed) this.#groupOf(host, transport).cancelled.push(call);
  }

  /** A client closed an HTTP stream: that of this call, or one on which no call waits. */
  noteClosedStream(host: string, call: GivenUpCall | undefined): void {
    if (this.#isClosed) return;
    const group = this.#groupOf(host, "http");
    group.closedStreams += 1;
    if (call !== undefined) group.left.push(call);
  }

  /** Drops what was not passed on, and hears no more. */
  close(): void {
    this.#isClosed = true;
    for (const { cancelTimer } of this.#groups.values()) cancelTimer();
    this.#groups.clear();
  }

  #groupOf(host: string, transport: Transport): Group {
    const key = `${transport} ${host}`;
    const known = this.#groups.get(key);
    if (known !== undefined) return known;
    const pass = () => {
      this.#groups.delete(key);
      const calls = [...group.cancelled, ...(group.closedStreams === 1 ? group.left : [])];
      if (calls.length > 0) this.#limits.noteGivenUp(host, transport, calls);
    };
    const cancelTimer = this.#clock.after(togetherMs, pass);
    const group: Group = { cancelled: [], left: [], closedStreams: 0, cancelTimer };
    this.#groups.set(key, group);
    return group;
  }
}
