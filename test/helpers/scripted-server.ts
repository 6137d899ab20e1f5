import { createInterface } from "node:readline";
import { parseMessage } from "../../src/wire/frames.ts";
import type { Message } from "../../src/wire/message.ts";
import type { ProgramContext } from "./programs.ts";

/** What a server answers; nothing for undefined. */
type Answer = { readonly result: unknown } | { readonly error: object } | undefined;

/**
 * Answers requests over stdio by their method, other requests with -32601, and ends with its input. `send` writes a
 * message of the server's own.
 */
export function answersTo(
  { stdin, stdout, exit }: ProgramContext,
  answers: Readonly<Record<string, (message: Message, send: (message: object) => void) => Answer | Promise<Answer>>>,
): void {
  const send = (message: object) => void stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  createInterface({ input: stdin })
    .on("line", async (line) => {
      const message = parseMessage(Buffer.from(line));
      const answer =
        message.method !== undefined && Object.hasOwn(answers, message.method)
          ? await answers[message.method]?.(message, send)
          : { error: { code: -32601, message: "Method not found" } };
      if (answer !== undefined && message.id !== undefined) send({ id: message.id, ...answer });
    })
    .on("close", () => exit(0));
}
