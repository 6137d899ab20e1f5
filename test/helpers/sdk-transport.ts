import { LineSplitter } from "../../src/wire/lines.ts";
import { readMessage } from "../../src/wire/message.ts";
import { codeCache, executable, quickStart } from "./meanwhile.ts";
import type { Pipes, Target } from "./server.ts";

/** A transport as each version of the SDK takes one. */
export interface SdkTransport {
  start(): Promise<void>;
  send(message: object): Promise<void>;
  close(): Promise<void>;
  onmessage?: (message: { method?: string }, extra?: unknown) => void;
  onclose?: () => void;
}

/** A child process as `StdioClientTransport` takes it. */
export function toProcess({ words, cwd, env }: Extract<Target, { words: unknown }>) {
  return {
    command: process.execPath,
    args: [quickStart, executable, ...words],
    env: { ...(process.env as Record<string, string>), NODE_COMPILE_CACHE: codeCache, ...env },
    cwd,
    stderr: "ignore" as const,
  };
}

/** A transport over linked streams. Delivers the messages of one chunk in the same turn, as a pipe's reader does. */
export function overPipes({ stdin, stdout, close }: Pipes): SdkTransport {
  const splitter = new LineSplitter(Number.POSITIVE_INFINITY);
  const transport: SdkTransport = {
    async start() {
      stdout.on("data", (chunk: Buffer | string) => {
        for (const line of splitter.push(Buffer.from(chunk as string)))
          transport.onmessage?.({ jsonrpc: "2.0", ...readMessage(line.toString()) } as { method?: string });
      });
    },
    async send(message) {
      stdin.write(`${JSON.stringify(message)}\n`);
    },
    async close() {
      await close();
      transport.onclose?.();
    },
  };
  return transport;
}

/** What the SDKs' own transports and ours have in common. */
interface Receiving {
  onmessage?: ((message: never, extra?: never) => void) | undefined;
}

/** Makes the client on this transport poll tasks every 20 ms, whatever interval the server asks for. */
export function withQuickPolls<T extends Receiving>(transport: T): T {
  const quicken = (key: string, value: unknown) =>
    key === "pollInterval" || key === "pollIntervalMs" ? Math.min(20, value as number) : value;
  let listener: ((message: unknown, extra?: unknown) => void) | undefined;
  Object.defineProperty(transport, "onmessage", {
    get: () => listener,
    set(given: typeof listener) {
      listener = given && ((message, extra) => given(JSON.parse(JSON.stringify(message), quicken), extra));
    },
  });
  return transport;
}
