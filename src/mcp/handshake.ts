import type { Clock } from "../clock.ts";
import type { Message } from "../wire/message.ts";

/**
 * Requests of the server wait at most this long for the end of the handshake: an upstream may need its answer before it
 * lists the tools that the handshake waits for.
 */
const maxWaitMs = 1_000;

/**
 * Until `initialize` is answered, the client gets nothing but that answer, pings, progress and log lines. Requests of the
 * server follow the answer. Changes of lists follow it too, for a client that has asked for the lists already.
 */
export class Handshake {
  readonly #clock: Clock;
  readonly #late = new Set<string>();
  #waiting: (() => void)[] = [];
  #isOpen = false;
  #hasWaited = false;
  #cancelWait: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** From `initialize` to its answer. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  begin(): void {
    this.#isOpen = true;
    this.#hasWaited = false;
  }

  /** True for what is not sent now, while the handshake is open. `send` sends it later. */
  holdsBack({ id, method }: Message, isAlone: boolean, send: () => void): boolean {
    if (method === undefined) return false;
    if (method.endsWith("/list_changed")) {
      if (!isAlone) this.#late.add(method);
      return true;
    }
    const isRequest = id !== undefined && id !== null && method !== "ping";
    const isOfWaiting = method === "notifications/cancelled" && this.#waiting.length > 0;
    if (this.#hasWaited || !(isRequest || isOfWaiting)) return false;
    this.#waiting.push(send);
    this.#cancelWait ??= this.#clock.after(maxWaitMs, () => {
      this.#hasWaited = true;
      this.#release();
    });
    return true;
  }

  /** `initialize` is answered. Returns the changes of lists that were held back. */
  end(): readonly Message[] {
    this.#isOpen = false;
    this.#release();
    return [...this.#late].map((method) => ({ method }));
  }

  /** The connection is closed. */
  close(): void {
    this.#waiting = [];
    this.#release();
  }

  #release(): void {
    this.#cancelWait?.();
    this.#cancelWait = undefined;
    for (const send of this.#waiting.splice(0)) send();
  }
}
