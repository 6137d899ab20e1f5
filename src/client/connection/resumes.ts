import { type Clock, sleep } from "../../clock.ts";
import type { Message } from "../../wire/message.ts";
import type { ServerEvent } from "../../wire/sse.ts";
import { nextResumeMs } from "./pauses.ts";

const defaultRetryMs = 1_000;
/** How often in a row a stream is opened that brings nothing, before it counts as lost. */
export const maxInVain = 50;
/** A stream that stood this long is no haste of its server's, though nothing came. */
const patientMs = 10_000;

/** Where a stream broke, and when it is opened again. A server may ask for patience, never for haste. */
export class Resumes {
  readonly #clock: Clock;
  #openedAt: number;
  #hasBrought = false;
  #inVain = 0;
  #lastId: string | undefined;
  #retryMs = defaultRetryMs;

  constructor(clock: Clock, lastId?: string) {
    this.#clock = clock;
    this.#lastId = lastId;
    this.#openedAt = clock.monotonic();
  }

  /** What the server is told to go on from. */
  get lastId(): string | undefined {
    return this.#lastId;
  }

  get isLost(): boolean {
    return this.#inVain > maxInVain;
  }

  opened(): void {
    this.#openedAt = this.#clock.monotonic();
    this.#hasBrought = false;
  }

  /** An event has come; one without a message brings nothing but where to go on. */
  heard(event: ServerEvent, message: Message | undefined): void {
    this.#lastId = event.id ?? this.#lastId;
    this.#retryMs = event.retryMs ?? this.#retryMs;
    if (message !== undefined) this.#hasBrought = true;
  }

  broke(): void {
    const wasOfUse = this.#hasBrought || this.#clock.monotonic() - this.#openedAt >= patientMs;
    this.#inVain = wasOfUse ? 0 : this.#inVain + 1;
  }

  /** Resolves when the stream may be opened again. */
  wait(signal: AbortSignal): Promise<void> {
    return sleep(this.#clock, nextResumeMs(Math.max(0, this.#inVain - 1), this.#retryMs), signal);
  }
}
