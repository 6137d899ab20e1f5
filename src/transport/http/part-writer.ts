import type { Clock } from "../../clock.ts";
import { partBytes, unread } from "../door-limits.ts";
import type { DoorResponse } from "./door-response.ts";

/**
 * Writes to an HTTP response as fast as its client reads, a part at a time, and closes it when the client does not
 * read.
 */
export class PartWriter {
  readonly #to: DoorResponse;
  readonly #clock: Clock;
  #waiting: Uint8Array[] = [];
  #waitsForDrain = false;
  /** Parts that the client has taken. */
  #taken = 0;
  #cancelLook: (() => void) | undefined;
  readonly #ended = Promise.withResolvers<void>();
  #isLast = false;
  #isClosed = false;
  /** What was handed over and not yet written. */
  waitingBytes = 0;

  constructor(to: DoorResponse, clock: Clock) {
    this.#to = to;
    this.#clock = clock;
    to.on("drain", this.#onDrain);
    to.once("close", this.#onClose);
    // Nothing comes after a close that has been.
    if (to.destroyed) this.#onClose();
  }

  readonly #onClose = (): void => {
    this.#isClosed = true;
    this.#cancelLook?.();
    this.#waiting = [];
    this.#ended.resolve();
  };

  /** See `Outbound`. An answer whose turn on its connection has not come is not there to read yet. */
  get untakenPart(): number | undefined {
    return this.#waitsForDrain && this.#to.socket !== null ? this.#taken : undefined;
  }

  write(bytes: Uint8Array): void {
    if (this.#isClosed) return;
    for (let at = 0; at < bytes.length; at += partBytes) this.#waiting.push(bytes.subarray(at, at + partBytes));
    this.waitingBytes += bytes.length;
    this.#writeOn();
  }

  /** Resolves when all is written, or nobody is there any more. */
  async end(): Promise<void> {
    this.#isLast = true;
    this.#writeOn();
    await this.#ended.promise;
    this.#to.end();
  }

  readonly #onDrain = (): void => {
    this.#waitsForDrain = false;
    this.#taken += 1;
    this.#cancelLook?.();
    this.#cancelLook = undefined;
    this.#writeOn();
  };

  #writeOn(): void {
    while (!this.#waitsForDrain) {
      const part = this.#waiting.shift();
      if (part === undefined) return void (this.#isLast && this.#ended.resolve());
      this.waitingBytes -= part.length;
      this.#waitsForDrain = !this.#to.write(part);
      if (this.#waitsForDrain) this.#lookWhetherRead();
    }
  }

  /**
   * Who leaves much unread, and takes nothing of it for a while, does not read. An answer whose turn on its connection
   * has not come is not theirs to read yet.
   */
  #lookWhetherRead(): void {
    this.#cancelLook ??= this.#clock.after(unread.ms, () => {
      this.#cancelLook = undefined;
      const isMuch = this.waitingBytes + this.#to.writableLength >= unread.bytes;
      if (isMuch && this.#to.socket !== null) this.#to.destroy();
      else if (this.#waitsForDrain) this.#lookWhetherRead();
    });
  }
}
