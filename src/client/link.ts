import type { Message } from "../wire/message.ts";
import type { ConnectionError } from "./errors.ts";

/** Messages to and from one server, whatever carries them. */
export interface Link {
  readonly kind: "command" | "url" | "socket";
  /** Takes a message to the server. Over HTTP a request lasts until its answer has come. */
  send(message: Message, options?: SendOptions): Promise<void>;
  /** Told once, when the handshake is over. */
  begin(revision: string): Promise<void>;
  close(): Promise<void>;
}

export interface SendOptions {
  readonly signal?: AbortSignal | undefined;
  /** Over HTTP: on a connection of its own, because one that was kept open may be gone just as the request leaves. */
  readonly isFresh?: boolean | undefined;
  /** Over HTTP. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

export interface LinkEvents {
  onMessage(message: Message): void;
  /** Called once; nothing comes after it. */
  onClose(why: ConnectionError): void;
}

/** No message may be larger. */
export const maxMessageBytes = 10 * 1024 * 1024;
export const tooLarge = `The server sent a message larger than ${maxMessageBytes / 1024 / 1024} MiB.`;
