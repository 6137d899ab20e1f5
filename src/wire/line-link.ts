import type { Readable, Writable } from "node:stream";
import { LineSplitter, maxLineBytes } from "./lines.ts";
import { type Message, readMessage, writeMessage } from "./message.ts";
import type { LinkEvents } from "./peer.ts";
import { ConnectionError } from "./peer-errors.ts";

/** Messages on a pair of byte streams, one a line. */

/** No message of a server's may be larger. */
export const maxMessageBytes = maxLineBytes;
export const tooLarge = `The server sent a message larger than ${maxMessageBytes / 1024 / 1024} MiB.`;

/** Some programs begin what they write with it. */
const byteOrderMark = "\uFEFF";

export interface LineEvents extends LinkEvents {
  /** A line was passed over that is no message. */
  onNoise?(line: string): void;
}

/** Reads messages until the returned function is called, with why; a line that is none is passed over. */
export function readLines(input: Readable, events: LineEvents): (why: ConnectionError) => void {
  const splitter = new LineSplitter(maxMessageBytes);
  let isOver = false;
  const finish = (why: ConnectionError) => {
    if (isOver) return;
    isOver = true;
    events.onClose(why);
  };
  const refuse = () => finish(new ConnectionError(tooLarge, { isPassing: false }));
  input.on("data", (chunk: Buffer) => {
    for (const line of splitter.push(chunk)) {
      if (isOver) return;
      if (line === "tooLong") return refuse();
      const text = line.toString("utf8");
      const message = readMessage(text.startsWith(byteOrderMark) ? text.slice(1) : text);
      if (message !== undefined) events.onMessage(message);
      else events.onNoise?.(text);
    }
    if (splitter.isTooLong) refuse();
  });
  input.on("error", () => undefined);
  return finish;
}

export function writeLine(output: Writable, message: Message): Promise<void> {
  return new Promise((resolve, reject) => {
    if (!output.writable)
      return reject(new ConnectionError("The connection to the server is closed.", { isUnsent: true }));
    output.write(`${writeMessage(message)}\n`, (cause) => {
      if (cause == null) resolve();
      else reject(new ConnectionError(`The server does not take messages any more: ${cause.message}.`, { cause }));
    });
  });
}
