import { CommandError } from "../errors.ts";
import type { Question } from "./client.ts";
import { cut } from "./message.ts";

/** The server answered with an error of JSON-RPC, or a task of its ended in one. */
export class ServerError extends CommandError {
  override readonly name = "ServerError";
  readonly code: number;
  readonly data: unknown;

  constructor(error: { readonly code: number; readonly message?: unknown; readonly data?: unknown }) {
    super(`The server answered with error ${error.code}: ${cut(typeof error.message === "string" ? error.message : "no message")}`, { details: error.data });
    this.code = error.code;
    this.data = error.data;
  }
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

/** The server asks something that nobody here can answer. A task is left alive and waits for its answer. */
export class InputRequired extends CommandError {
  override readonly name = "InputRequired";
  readonly question: Question;
  readonly taskId: string | undefined;

  constructor(question: Question, how: string) {
    super(`The server asks «${cut(question.message)}», and nobody here can answer: ${how}`);
    this.question = question;
    this.taskId = question.taskId;
  }
}
