import { createHash, createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { CLIENT_CAPABILITIES_META_KEY, type InputRequests, ProtocolError, type Result, type ServerContext } from "@modelcontextprotocol/server";
import type { Clock } from "../clock.ts";
import type { Answer, Question } from "../command/context.ts";
import { Cancelled } from "../errors.ts";
import { createId } from "../ids.ts";
import type { Caller } from "./caller.ts";
import type { CommandServer, ToolCall } from "./server.ts";

/**
 * How a running call asks its person something.
 *
 * Before 2026-07-28 the server sends `elicitation/create` and waits. Since then a server sends no requests: the call
 * answers `input_required` with its questions, and the client calls again with the answers. The run itself is not
 * started again: it stays parked here, and the signed `requestState` leads the second call back to it.
 */

const parkedForMs = 60 * 60 * 1000;
const maxParked = 1_000;
const elicitTimeoutMs = 24 * 60 * 60 * 1000;

/** Asks over the connection of a client before 2026-07-28. */
export async function elicit(question: Question, ctx: ServerContext, signal: AbortSignal): Promise<Answer> {
  const params = { message: question.message, requestedSchema: question.schema };
  return toAnswer(await ctx.mcpReq.send({ method: "elicitation/create", params } as never, { signal, timeout: elicitTimeoutMs }));
}

/** What a client sends may lack its content. */
function toAnswer(response: unknown): Answer {
  const { action, content } = response as { action?: string; content?: Record<string, unknown> };
  return action === "accept" ? { action, content: content ?? {} } : { action: action === "decline" ? "decline" : "cancel" };
}

/** True when this request's client can show a form to its person. */
export function canElicit(ctx: ServerContext, server: CommandServer): boolean {
  const envelope = ctx.mcpReq.envelope as Record<string, unknown> | undefined;
  const capabilities = (envelope?.[CLIENT_CAPABILITIES_META_KEY] ?? server.server.getClientCapabilities()) as
    | { elicitation?: { form?: object; url?: object } }
    | undefined;
  const elicitation = capabilities?.elicitation;
  // A bare `elicitation: {}` is the older way to say "forms".
  return elicitation !== undefined && (elicitation.form !== undefined || elicitation.url === undefined);
}

/** A call that may be answered in several legs. */
export class Conversation {
  readonly id = createId();
  readonly #clock: Clock;
  readonly #open = new Map<string, { question: Question; resolve: (answer: Answer) => void }>();
  readonly #stop = new AbortController();
  #asked = Promise.withResolvers<void>();
  #outcome: Promise<Result> | undefined;
  #lastKey = 0;
  /** The request that is being answered right now. */
  leg: ServerContext;
  /** How many times the client has been sent away with questions. */
  round = 0;

  constructor(clock: Clock, leg: ServerContext) {
    this.#clock = clock;
    this.leg = leg;
  }

  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  start(outcome: Promise<Result>): void {
    this.#outcome = outcome;
  }

  ask(question: Question, signal: AbortSignal): Promise<Answer> {
    const key = `q${++this.#lastKey}`;
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        this.#open.delete(key);
        reject(signal.reason as Error);
      };
      signal.addEventListener("abort", onAbort, { once: true });
      this.#open.set(key, {
        question,
        resolve: (answer) => {
          signal.removeEventListener("abort", onAbort);
          resolve(answer);
        },
      });
      // Questions asked side by side go out together.
      this.#clock.after(0, () => this.#asked.resolve());
    });
  }

  answer(responses: Readonly<Record<string, unknown>>): void {
    for (const [key, response] of Object.entries(responses)) {
      const open = this.#open.get(key);
      if (open === undefined) continue;
      this.#open.delete(key);
      open.resolve(toAnswer(response));
    }
    if (this.#open.size === 0) this.#asked = Promise.withResolvers<void>();
  }

  /** What this leg is answered with: the result, or the open questions. */
  async next(): Promise<Result | { questions: InputRequests }> {
    const onAbort = () => this.cancel(new Cancelled());
    this.leg.mcpReq.signal.addEventListener("abort", onAbort, { once: true });
    try {
      const outcome = this.#outcome as Promise<Result>;
      const result = await Promise.race([outcome, this.#asked.promise.then(() => undefined)]);
      if (result !== undefined) return result;
      return { questions: Object.fromEntries([...this.#open].map(([key, { question }]) => [key, toInputRequest(question)])) };
    } finally {
      this.leg.mcpReq.signal.removeEventListener("abort", onAbort);
    }
  }

  cancel(reason: Error): void {
    this.#stop.abort(reason);
  }
}

function toInputRequest(question: Question): InputRequests[string] {
  return { method: "elicitation/create", params: { mode: "form", message: question.message, requestedSchema: question.schema } } as InputRequests[string];
}

interface Parked {
  readonly conversation: Conversation;
  readonly binding: string;
  readonly release: () => void;
}

/** Calls that wait for answers, found again by a signed state that fits one caller, one tool and one set of arguments. */
export class ParkedCalls {
  readonly #clock: Clock;
  readonly #calls = new Map<string, Parked>();
  readonly #key = randomBytes(32);

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  park(conversation: Conversation, call: ToolCall, caller: Caller): string {
    if (this.#calls.size >= maxParked) {
      const [oldest] = this.#calls.values();
      oldest?.conversation.cancel(new Cancelled("Too many calls are waiting for answers."));
      oldest?.release();
    }
    conversation.round += 1;
    const binding = bindingOf(call, caller);
    const cancelTimer = this.#clock.after(parkedForMs, () => {
      release();
      conversation.cancel(new Cancelled("Nobody answered its question within an hour."));
    });
    const release = () => {
      cancelTimer();
      this.#calls.delete(conversation.id);
    };
    this.#calls.set(conversation.id, { conversation, binding, release });
    return this.#sign(`${conversation.id}.${conversation.round}`);
  }

  /** Takes the call that a state leads to; each state works once. */
  resume(state: unknown, call: ToolCall, caller: Caller): Conversation {
    const refusal = new ProtocolError(-32602, "Invalid or expired requestState", { reason: "invalid_request_state" });
    const [id, round] = this.#verify(state)?.split(".") ?? [];
    const parked = this.#calls.get(id ?? "");
    if (parked === undefined || String(parked.conversation.round) !== round || parked.binding !== bindingOf(call, caller)) throw refusal;
    parked.release();
    return parked.conversation;
  }

  close(reason: Error): void {
    for (const { conversation, release } of this.#calls.values()) {
      conversation.cancel(reason);
      release();
    }
  }

  #sign(text: string): string {
    return `${text}.${this.#tag(text).toString("base64url")}`;
  }

  #verify(state: unknown): string | undefined {
    if (typeof state !== "string" || state.length > 500) return undefined;
    const end = state.lastIndexOf(".");
    const text = state.slice(0, end);
    const given = Buffer.from(state.slice(end + 1), "base64url");
    const expected = this.#tag(text);
    return end > 0 && given.length === expected.length && timingSafeEqual(given, expected) ? text : undefined;
  }

  #tag(text: string): Buffer {
    return createHmac("sha256", this.#key).update(text).digest();
  }
}

function bindingOf(call: ToolCall, caller: Caller): string {
  return createHash("sha256")
    .update(JSON.stringify([caller.kind, call.name, call.arguments ?? {}]))
    .digest("hex");
}
