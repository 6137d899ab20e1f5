import type { DoorResponse } from "./door-response.ts";

type Controller = ReadableStreamDefaultController<Uint8Array>;

/** As much as a socket of node's takes before it wants to be waited for. */
const highWaterMark = 64 * 1024;
/** Said of a request whose client is gone; nobody reads it. */
const clientGone = 499;
/** What whoever writes it to a connection says by itself. */
const leftToTheServer = new Set(["content-length", "connection"]);

/**
 * Makes a web Response of what is written: a text where that is all there is, a stream as soon as there is more. What
 * was handed over has left, as far as can be known; of a stream, what its reader has taken, but for a last little.
 */
export class WebResponse implements DoorResponse {
  readonly #made = Promise.withResolvers<Response>();
  readonly #onClose: (() => void)[] = [];
  readonly #onDrain: (() => void)[] = [];
  #status = 200;
  #headers: Record<string, string> = {};
  #stream: Controller | undefined;
  #needsDrain = false;
  readonly socket = undefined;
  headersSent = false;
  destroyed = false;
  closed = false;
  writableFinished = false;

  /** Never rejects. */
  get made(): Promise<Response> {
    return this.#made.promise;
  }

  get writableEnded(): boolean {
    return this.closed;
  }

  get writableLength(): number {
    return highWaterMark - (this.#stream?.desiredSize ?? highWaterMark);
  }

  /** Breaks it off when the client is gone. Who is answered in this turn of the event loop is not watched. */
  watch(request: Request): void {
    setImmediate(() => {
      if (this.closed) return;
      const { signal } = request;
      // Nobody is left to learn anything, and servers print what breaks under their hands.
      const onAbort = () => this.#breakOff((stream) => stream.close());
      if (signal.aborted) return void onAbort();
      signal.addEventListener("abort", onAbort, { once: true });
      this.once("close", () => signal.removeEventListener("abort", onAbort));
    });
  }

  on(_event: "drain", listener: () => void): void {
    this.#onDrain.push(listener);
  }

  once(_event: "close", listener: () => void): void {
    this.#onClose.push(listener);
  }

  writeHead(status: number, headers: Readonly<Record<string, string | number>>): void {
    this.headersSent = true;
    this.#status = status;
    for (const name in headers) if (!leftToTheServer.has(name)) this.#headers[name] = String(headers[name]);
  }

  flushHeaders(): void {
    if (!this.closed) this.#open();
  }

  write(bytes: Uint8Array): boolean {
    if (this.closed) return false;
    const stream = this.#open();
    stream.enqueue(bytes);
    this.#needsDrain = (stream.desiredSize ?? 0) <= 0;
    return !this.#needsDrain;
  }

  end(text?: string): void {
    if (this.closed) return;
    if (this.#stream === undefined) this.#make(text ?? null);
    else this.#stream.close();
    this.writableFinished = true;
    this.#close();
  }

  /** Whoever reads it learns that it is not whole. */
  destroy(): void {
    this.#breakOff((stream) => stream.error(new Error("The answer was broken off.")));
  }

  #breakOff(end: (stream: Controller) => void): void {
    if (this.closed) return;
    if (this.#stream === undefined) {
      this.#status = clientGone;
      this.#make(null);
    } else end(this.#stream);
    this.#close();
  }

  #open(): Controller {
    if (this.#stream === undefined) this.#make(this.#createStream());
    return this.#stream as Controller;
  }

  #createStream(): ReadableStream<Uint8Array> {
    return new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#stream = controller;
        },
        pull: () => this.#drain(),
        cancel: () => this.#close(),
      },
      { highWaterMark, size: ({ byteLength }) => byteLength },
    );
  }

  #make(body: string | ReadableStream<Uint8Array> | null): void {
    this.#made.resolve(new Response(body, { status: this.#status, headers: this.#headers }));
  }

  #drain(): void {
    if (!this.#needsDrain || this.closed) return;
    this.#needsDrain = false;
    for (const listener of this.#onDrain) listener();
  }

  /** Whoever listens hears of it when the one who closed has said all it had to say. */
  #close(): void {
    if (this.closed) return;
    this.closed = true;
    this.destroyed = true;
    queueMicrotask(() => {
      for (const listener of this.#onClose) listener();
    });
  }
}
