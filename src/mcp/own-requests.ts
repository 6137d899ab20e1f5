import type { Clock } from "../clock.ts";
import { ProtocolError } from "../errors.ts";
import { InFlight } from "../wire/in-flight.ts";
import type { Json } from "../wire/json.ts";
import type { Message } from "../wire/message.ts";
import type { AskLimits } from "./request.ts";

/** Requests of ours to one client. */
export class OwnRequests {
  readonly #inFlight: InFlight<Message>;
  readonly #clock: Clock;

  /** `firstId`: where their numbers begin. */
  constructor(clock: Clock, firstId: number) {
    this.#clock = clock;
    this.#inFlight = new InFlight(firstId - 1);
  }

  /** Resolves with the client's result; who gives up on it has the client told. */
  async ask(
    { method, params }: { readonly method: string; readonly params: Json },
    send: (message: Message) => void,
    { signal, timeoutMs }: AskLimits,
  ): Promise<unknown> {
    const { id, answer, fail } = this.#inFlight.open();
    const giveUp = (reason: unknown) => {
      send({ method: "notifications/cancelled", params: { requestId: id, reason: String(reason) } });
      fail(reason);
    };
    const onAbort = () => giveUp(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    const stopClock = this.#clock.after(timeoutMs, () => giveUp(new Error(`No answer to ${method} came in time.`)));
    send({ id, method, params });
    try {
      const { result, error } = await answer;
      if (error !== undefined) throw new ProtocolError(error.code, error.message, error.data);
      return result;
    } finally {
      stopClock();
      signal.removeEventListener("abort", onAbort);
    }
  }

  /** False when nobody here waits for it. */
  settle(answer: Message): boolean {
    // A client may write our number as a text.
    return this.#inFlight.settle(Number(answer.id), answer);
  }

  failAll(why: unknown): void {
    this.#inFlight.failAll(why);
  }
}
