import { messageOf, RequestError, requestErrors } from "../errors.ts";
import type { Logger } from "../log.ts";
import type { Way } from "../mcp/incoming.ts";
import { Backlog, type Outbound } from "../mcp/outbound.ts";
import { parseMessage } from "../wire/frames.ts";
import { type Message, writeAnything } from "../wire/message.ts";

/**
 * What carries messages, as every SDK has it: an in-memory pair, a WebSocket. Nothing else of it is used, so it may be
 * of any copy of any version.
 */
export interface MessageTransport {
  onmessage?: ((message: never, ...others: never[]) => void) | undefined;
  onclose?: (() => void) | undefined;
  onerror?: ((error: Error) => void) | undefined;
  start(): Promise<void>;
  send(message: never): Promise<void>;
  close(): Promise<void>;
}

/** The same as it is used here: what it carries is looked at when it comes. */
interface CarryingTransport {
  onmessage?: (message: unknown) => void;
  onclose?: () => void;
  onerror?: (error: Error) => void;
  start(): Promise<void>;
  send(message: unknown): Promise<void>;
  close(): Promise<void>;
}

type Id = string | number;

/** Requests without an answer on one connection. */
const maxInFlight = 10_000;
/** Beyond as many that have not left, what may be dropped is. */
const maxUnsent = 1_000;
const droppable = new Set(["notifications/progress", "notifications/message"]);

/** One MCP connection over somebody else's transport. What crosses it is copied: neither side holds the other's values. */
export class TransportWay implements Way, Outbound {
  readonly backlog = new Backlog();
  readonly exchange = undefined;
  onMessage?: (message: Message) => void;
  onClose?: () => void;
  readonly #transport: CarryingTransport;
  readonly #log: Logger;
  /** Requests that came, and who wants to know when their answers have left. */
  readonly #inFlight = new Map<Id, ((hasLeft: boolean) => void)[]>();
  /** The same of answers that the transport has not sent yet. */
  readonly #sending = new Set<readonly ((hasLeft: boolean) => void)[]>();
  /** Messages that the transport has not sent yet, and those that it has sent. */
  #unsent = 0;
  #sent = 0;
  #isClosed = false;

  constructor(transport: MessageTransport, log: Logger) {
    this.#transport = transport as unknown as CarryingTransport;
    this.#log = log;
  }

  async start(): Promise<void> {
    this.#transport.onmessage = (message) => this.#receive(message);
    this.#transport.onclose = () => this.#closed();
    this.#transport.onerror = (error) => this.#log.debug(`mcp: ${messageOf(error)}`);
    await this.#transport.start();
  }

  get outbound(): Outbound {
    return this;
  }

  send(message: Message): void {
    const { method, id } = message;
    if (this.#isClosed || (method !== undefined && droppable.has(method) && this.#unsent >= maxUnsent)) return;
    const waiting = method === undefined && id !== undefined && id !== null ? this.#take(id) : [];
    const text = writeAnything(message);
    if (text === undefined) return;
    this.#unsent += 1;
    this.#sending.add(waiting);
    void this.#hand(JSON.parse(text)).then((hasLeft) => {
      this.#unsent -= 1;
      this.#sent += 1;
      if (!this.#sending.delete(waiting)) return;
      for (const tell of waiting) tell(hasLeft);
    });
  }

  whenLeft(requestId: Id): Promise<boolean> {
    const waiting = this.#inFlight.get(requestId);
    // To what is in flight no longer, because it was taken back, there is no answer to wait for.
    if (waiting === undefined) return Promise.resolve(!this.#isClosed);
    return new Promise((resolve) => waiting.push(resolve));
  }

  /** A message counts as one part, whatever its size: a transport says no more than that it has sent a message. */
  get untakenPart(): number | undefined {
    return this.#unsent > 0 ? this.#sent : undefined;
  }

  /** The client counts as lost at once: a transport may wait for its client before it closes. */
  closeSlow(): void {
    this.#log.warn("closed a connection: its client reads too slowly, and others wait for room for their results");
    this.#closed();
    void this.#closeTransport();
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    await this.#closeTransport();
    this.#closed();
  }

  async #closeTransport(): Promise<void> {
    await this.#transport.close().catch((error: unknown) => this.#log.debug(`mcp: ${messageOf(error)}`));
  }

  async #hand(message: unknown): Promise<boolean> {
    try {
      await this.#transport.send(message);
      return true;
    } catch (error) {
      this.#log.debug(`mcp: ${messageOf(error)}`);
      return false;
    }
  }

  #take(id: Id): readonly ((hasLeft: boolean) => void)[] {
    const waiting = this.#inFlight.get(id) ?? [];
    this.#inFlight.delete(id);
    return waiting;
  }

  #receive(given: unknown): void {
    if (this.#isClosed) return;
    try {
      const message = parseMessage(Buffer.from(toText(given)));
      this.#track(message);
      this.onMessage?.(message);
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      const { kind } = error;
      // What the client sent may be private; its kind is enough for the log.
      this.#log.warn("refused a message", { kind });
      const id = kind === "busy" ? ((given as Message).id ?? null) : null;
      this.send({ id, error: { code: requestErrors[kind].code, message: error.message } });
    }
  }

  /** An id names one call at a time; answering a second one would give its caller the first one's result. */
  #track({ method, id, params }: Message): void {
    if (method === "notifications/cancelled") {
      const { requestId } = (params ?? {}) as { readonly requestId?: Id };
      if (requestId !== undefined) for (const tell of this.#take(requestId)) tell(true);
    }
    if (method === undefined || id === undefined || id === null) return;
    if (this.#inFlight.has(id))
      throw new RequestError(
        "request",
        `The id ${JSON.stringify(id)} belongs to a call that is still running; use a fresh id.`,
      );
    if (this.#inFlight.size >= maxInFlight)
      throw new RequestError("busy", `There are ${maxInFlight} requests without an answer on this connection already.`);
    this.#inFlight.set(id, []);
  }

  #closed(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    // A transport may never say what became of the messages that it was sending.
    for (const waiting of [...this.#inFlight.values(), ...this.#sending]) for (const tell of waiting) tell(false);
    this.#inFlight.clear();
    this.#sending.clear();
    this.onClose?.();
  }
}

function toText(message: unknown): string {
  try {
    return JSON.stringify(message) ?? "";
  } catch (error) {
    throw new RequestError("parse", `The message cannot be written as JSON: ${messageOf(error).split("\n")[0]}.`);
  }
}
