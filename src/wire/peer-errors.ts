import { CommandError, RpcCode } from "../errors.ts";
import { fieldsOf, type Json } from "./json.ts";

/** The other side answered with an error of JSON-RPC, or a task of its ended in one. */
export class ServerError extends CommandError {
  override readonly name = "ServerError";
  readonly code: number;
  readonly data: unknown;

  constructor(error: { readonly code: number; readonly message?: unknown; readonly data?: unknown }) {
    super(
      `The server answered with error ${error.code}: ${cut(typeof error.message === "string" ? error.message : "no message")}`,
      { details: error.data },
    );
    this.code = error.code;
    this.data = error.data;
  }
}

interface MalformedOptions {
  readonly server?: string;
  readonly request?: string;
  /** The protocol whose rules the answer breaks. Default: JSON-RPC. */
  readonly protocol?: "JSON-RPC" | "MCP";
}

/**
 * The server sent an answer that breaks the rules of JSON-RPC or MCP. The request has ended: no other answer will come.
 * `code` and `message` make it the `error` of a message.
 */
export class MalformedAnswer extends CommandError {
  override readonly name = "MalformedAnswer";
  readonly code = RpcCode.Internal;
  readonly #flaw: string;
  readonly #protocol: "JSON-RPC" | "MCP";

  constructor(
    flaw: string,
    { server = "The server", request = "a request", protocol = "JSON-RPC" }: MalformedOptions = {},
  ) {
    super(`${server} answered ${request} with a message that is not valid ${protocol}: ${flaw}.`);
    this.#flaw = flaw;
    this.#protocol = protocol;
  }

  /** The same error in a sentence that names the server and the request. */
  naming(server: string, request: string): MalformedAnswer {
    return new MalformedAnswer(this.#flaw, { server, request, protocol: this.#protocol });
  }
}

/**
 * Throws a `MalformedAnswer` where the result holds that of a tool, and its `content` is there and no array: whatever
 * reads it would take it for empty. Without `content` a result passes.
 */
export function checkToolResult(method: string, result: Json): void {
  const isToolResult = method === "tools/call" || method === "tasks/result";
  const { content } = isToolResult ? result : method === "tasks/get" ? fieldsOf(result.result) : {};
  if (content === undefined || Array.isArray(content)) return;
  const flaw = `its \`content\` is no array: «${cut(JSON.stringify(content), 100)}»`;
  throw new MalformedAnswer(flaw, { request: method, protocol: "MCP" });
}

/** The server cannot be reached, or was lost. */
export class ConnectionError extends Error {
  override readonly name = "ConnectionError";
  /** True when the message certainly did not reach the server, so that sending it again is safe. */
  readonly isUnsent: boolean;
  /** False when trying again would end the same way. */
  readonly isPassing: boolean;
  /** Of HTTP. */
  readonly status: number | undefined;
  readonly retryAfterMs: number | undefined;
  /** What a started server printed to its standard error before it ended; its last line is in the message. */
  readonly lastWords: string | undefined;

  constructor(message: string, facts: ConnectionFacts = {}) {
    super(message, facts.cause === undefined ? {} : { cause: facts.cause });
    this.isUnsent = facts.isUnsent ?? false;
    this.isPassing = facts.isPassing ?? true;
    this.status = facts.status;
    this.retryAfterMs = facts.retryAfterMs;
    this.lastWords = facts.lastWords;
  }
}

interface ConnectionFacts {
  readonly isUnsent?: boolean;
  readonly isPassing?: boolean;
  readonly status?: number;
  readonly retryAfterMs?: number | undefined;
  readonly lastWords?: string;
  readonly cause?: unknown;
}

/** Words of a server's for a sentence of ours: one line, of a length that can be read. */
export function cut(text: string, length = 300): string {
  const line = text.replaceAll(/\s+/g, " ").trim();
  return line.length <= length ? line : `${line.slice(0, length - 1)}…`;
}
