import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { readMessage } from "../../src/wire/message.ts";
import { EventReader } from "../../src/wire/sse.ts";
import { cleanUp } from "./home.ts";
import type { Message } from "./wire.ts";

/**
 * HTTP written by hand on a socket of one's own: every byte of a request is the test's, and every byte that comes back
 * is seen.
 */

/** One answer as it came. */
export interface RawAnswer {
  readonly status: number;
  /** By their names in small letters. */
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  /** The messages in it: the body's own, or those of its events. */
  readonly messages: readonly Message[];
}

export type RawHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;

const guardMs = 20_000;

export class RawSocket {
  readonly socket: Socket;
  /**
   * What has come and belongs to no answer that was taken; one letter a byte, so that lengths are those of the wire.
   */
  received = "";
  isClosed = false;
  #onNews: () => void = () => undefined;

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.setNoDelay(true);
    // Of a connection that is broken off, on either side, its end is all there is to know.
    socket.on("error", () => undefined);
    socket.on("close", () => {
      this.isClosed = true;
      this.#onNews();
    });
    socket.setEncoding("latin1").on("data", (part: string) => {
      this.received += part;
      this.#onNews();
    });
  }

  /** A connection to the server of this address; broken off after the test. */
  static async open(url: string): Promise<RawSocket> {
    const opened = await RawSocket.dial(url);
    cleanUp(() => void opened.socket.destroy());
    return opened;
  }

  /** The same for who opens so many of them that each has to go at once. */
  static async dial(url: string): Promise<RawSocket> {
    const socket = connect(Number(new URL(url).port), "127.0.0.1");
    await once(socket, "connect");
    return new RawSocket(socket);
  }

  send(...parts: readonly (string | Uint8Array)[]): this {
    for (const part of parts) this.socket.write(part);
    return this;
  }

  /** The next answer, as soon as all of it is here. */
  async answer(): Promise<RawAnswer> {
    return await this.#until(() => this.#take(), "a whole answer");
  }

  /** What has been received, as soon as it holds this. */
  async shows(text: string): Promise<string> {
    return await this.#until(() => (this.received.includes(text) ? this.received : undefined), JSON.stringify(text));
  }

  /** Resolves with what had come when the other side closed the connection. */
  async closed(): Promise<string> {
    return await this.#until(() => (this.isClosed ? this.received : undefined), "its end");
  }

  #take(): RawAnswer | undefined {
    const found = readAnswer(this.received, this.isClosed);
    if (found === undefined) return undefined;
    this.received = this.received.slice(found.length);
    return found.answer;
  }

  async #until<T>(look: () => T | undefined, what: string): Promise<T> {
    const tell = (why: string) =>
      new Error(`${why} before ${what} came; what came was ${JSON.stringify(this.received.slice(0, 500))}`);
    const guard = setTimeout(() => this.socket.destroy(tell("Too long a time passed")), guardMs);
    try {
      for (;;) {
        const found = look();
        if (found !== undefined) return found;
        if (this.isClosed) throw tell("The connection was closed");
        await new Promise<void>((resolve) => {
          this.#onNews = resolve;
        });
      }
    } finally {
      clearTimeout(guard);
    }
  }
}

/** A request as it is sent. A header that is undefined is left out, one with several values is sent several times. */
export function toRequest(first: string, headers: RawHeaders, body = ""): string {
  const lines = Object.entries(headers).flatMap(([name, values = []]) =>
    [values].flat().map((value) => `${name}: ${value}\r\n`),
  );
  return `${first}\r\n${lines.join("")}\r\n${body}`;
}

/** The first answer in what has come, and how many bytes it takes; undefined while it is not all there. */
function readAnswer(
  received: string,
  isClosed: boolean,
): { readonly answer: RawAnswer; readonly length: number } | undefined {
  const end = received.indexOf("\r\n\r\n");
  if (end === -1) return undefined;
  const [first = "", ...lines] = received.slice(0, end).split("\r\n");
  const status = Number(/^HTTP\/1\.1 (\d{3}) [\w -]+$/.exec(first)?.[1]);
  if (Number.isNaN(status)) throw new Error(`This is no answer of HTTP: ${JSON.stringify(received.slice(0, 200))}`);
  const headers = Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(":")).toLowerCase(), line.slice(line.indexOf(":") + 1).trim()]),
  );
  const body = status < 200 ? { text: "", length: 0 } : readBody(received.slice(end + 4), headers, isClosed);
  if (body === undefined) return undefined;
  const text = Buffer.from(body.text, "latin1").toString();
  return {
    answer: { status, headers, text, messages: messagesIn(text, headers["content-type"] ?? "") },
    length: end + 4 + body.length,
  };
}

function readBody(
  rest: string,
  headers: Readonly<Record<string, string>>,
  isClosed: boolean,
): { text: string; length: number } | undefined {
  if (headers["transfer-encoding"] === "chunked") return readChunks(rest);
  const length = Number(headers["content-length"]);
  if (Number.isNaN(length)) return isClosed ? { text: rest, length: rest.length } : undefined;
  return rest.length < length ? undefined : { text: rest.slice(0, length), length };
}

function readChunks(rest: string): { text: string; length: number } | undefined {
  let text = "";
  for (let at = 0; ; ) {
    const start = rest.indexOf("\r\n", at) + 2;
    const size = Number.parseInt(rest.slice(at, start), 16);
    if (start === 1 || rest.length < start + size + 2) return undefined;
    text += rest.slice(start, start + size);
    at = start + size + 2;
    if (size === 0) return { text, length: at };
  }
}

function messagesIn(text: string, type: string): Message[] {
  const texts = type.startsWith("application/json")
    ? [text]
    : new EventReader().push(Buffer.from(text)).map(({ data }) => data);
  return texts.filter((data) => data !== "").map((data) => readMessage(data) as Message);
}
