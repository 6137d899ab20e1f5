import { AsyncLocalStorage } from "node:async_hooks";
import type { Id } from "../wire/in-flight.ts";
import type { Message } from "../wire/message.ts";
import type { GuestPair, MessageExtra } from "./guest-host.ts";

/** Of what no request has led to, but a notification of ours. */
const noRequest: Id = "";

interface WorkedRequest {
  readonly id: Id;
  readonly by: LinkedPair;
  /** See `GuestClient`. Undefined for a request of ours, and for a notification. */
  readonly who: string | undefined;
}

/** The request that a server's code runs for, also in what it starts: timers, promises. */
const worked = new AsyncLocalStorage<WorkedRequest>();
/** Cheaper than a microtask of its own. */
const soon = Promise.resolve();

/** The request that a message belongs to, as far as that can be known. */
export interface About {
  readonly id: Id | undefined;
  /** Whose request it is, also when that has been answered; undefined where no client's request is known. */
  readonly who: string | undefined;
  /** The server itself has said so. What only follows from where it was said may be wrong: code is shared. */
  readonly isSaid: boolean;
}

interface PairOptions {
  readonly sessionId: string | undefined;
  readonly receive: (message: Message, about: About) => void;
  readonly onClose: () => void;
  /** A server could not take a message. */
  readonly onError: (error: unknown) => void;
}

/** Two ends in one process: ours, and the one that a guest is given. */
export class LinkedPair {
  readonly theirs: GuestPair;
  /** What came before the guest was there to hear it. */
  #early: (() => void)[] | undefined = [];

  #isClosed = false;

  readonly #onError: (error: unknown) => void;

  constructor({ sessionId, receive, onClose, onError }: PairOptions) {
    this.#onError = onError;
    const isClosed = () => this.#isClosed;
    this.theirs = {
      get isClosed() {
        return isClosed();
      },
      sessionId,
      start: async () => {
        const early = this.#early ?? [];
        this.#early = undefined;
        for (const deliver of early) deliver();
      },
      send: async (message, options) => {
        const related = options?.relatedRequestId;
        const { id, who } = this.#worked ?? {};
        receive(message as Message, { id: related ?? id, who, isSaid: related !== undefined });
      },
      close: async () => onClose(),
    };
  }

  /**
   * Gives a message to the server: in the order in which it came, and not within the call that sent it. `who` has sent
   * the request.
   */
  deliver(message: Message, extra?: MessageExtra, who?: string): void {
    const send = () =>
      void soon.then(() => this.theirs.onmessage?.({ jsonrpc: "2.0", ...message }, extra)).catch(this.#onError);
    const { id, method } = message;
    // Of an answer nobody asks in whose name it came: what waits for it goes on in its own.
    const inItsName = method === undefined ? send : () => worked.run({ id: id ?? noRequest, by: this, who }, send);
    if (this.#early === undefined) inItsName();
    else this.#early.push(inItsName);
  }

  /** One server's words in the middle of another's request belong to neither. */
  get #worked(): WorkedRequest | undefined {
    const request = worked.getStore();
    return request?.by === this ? request : undefined;
  }

  close(): void {
    this.#isClosed = true;
    this.theirs.onclose?.();
  }
}
