import { createHash, createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { type Clock, toTimestamp } from "../clock.ts";
import type { Command } from "../command/command.ts";
import type { Answer, Origin, Question } from "../command/context.ts";
import { askFirst } from "../command/run.ts";
import { validate } from "../command/schema.ts";
import { ProtocolError } from "../errors.ts";
import { createId } from "../ids.ts";
import { digestOf } from "../task/digest.ts";
import type { LimitedQuestion, TaskQuestion } from "../task/task.ts";
import type { Json } from "../wire/json.ts";
import { type Caller, callerKey } from "./caller.ts";
import type { ToolCall } from "./parts.ts";
import type { ClientConnection, ClientRequest } from "./request.ts";

/**
 * How a question reaches the person behind a call.
 *
 * Before 2026-07-28 the server sends `elicitation/create` and waits. Since then a server sends no requests: the call
 * answers `input_required` with its questions, and the client calls again with the answers and a signed `requestState`.
 * That state leads back to a run that waits, or, for questions ahead of any run, carries the answers given so far.
 */

export const stateLivesMs = 60 * 60 * 1000;
const maxStateLength = 64 * 1024;
const elicitTimeoutMs = 24 * 60 * 60 * 1000;

/**
 * Asks a client before 2026-07-28: on the stream of a request, or on whatever stream its connection has open by itself.
 */
export async function elicit(
  question: LimitedQuestion,
  on: Pick<ClientRequest | ClientConnection, "ask">,
  signal: AbortSignal,
  related?: Record<string, unknown>,
): Promise<Answer> {
  const _meta = { ...related, ...deadlineOf(question) };
  const params = {
    message: question.message,
    requestedSchema: question.schema,
    ...(Object.keys(_meta).length > 0 && { _meta }),
  };
  return toAnswer(await on.ask("elicitation/create", params, { signal, timeoutMs: elicitTimeoutMs }));
}

/** What a client sends may lack its content. */
export function toAnswer(response: unknown): Answer {
  const { action, content } = (response ?? {}) as { action?: string; content?: Record<string, unknown> };
  return action === "accept"
    ? { action, content: content ?? {} }
    : { action: action === "decline" ? "decline" : "cancel" };
}

export interface ClientCapabilities {
  readonly elicitation?: { readonly form?: object; readonly url?: object };
  readonly extensions?: Readonly<Record<string, unknown>>;
  readonly experimental?: Readonly<Record<string, unknown>>;
}

/** True when this request's client can show a form to its person. */
export function canElicit({ elicitation }: ClientCapabilities): boolean {
  // A bare `elicitation: {}` is the older way to say "forms".
  return elicitation !== undefined && (elicitation.form !== undefined || elicitation.url === undefined);
}

export function toInputRequest(question: LimitedQuestion): Json {
  const { message, schema } = question;
  const _meta = deadlineOf(question);
  return {
    method: "elicitation/create",
    params: { mode: "form", message, requestedSchema: schema, ...(_meta && { _meta }) },
  };
}

/** By when it has to be answered, for a client that shows it. */
function deadlineOf({ until }: LimitedQuestion): Record<string, unknown> | undefined {
  return until === undefined ? undefined : { "meanwhile/answerUntil": toTimestamp(until) };
}

/** How the questions ahead of a run stand: all answered, some open, or a no. */
export type Ahead =
  | { readonly kind: "ready"; readonly answered: readonly TaskQuestion[] }
  | { readonly kind: "open"; readonly asked: readonly TaskQuestion[] }
  | { readonly kind: "refused"; readonly error: unknown };

export interface AheadOptions {
  /** What was asked before, with the answers that came. */
  readonly known: readonly TaskQuestion[];
  readonly clock: Clock;
  readonly origin: Origin;
}

/** Asks what a command asks ahead of its run, as far as the answers go. Keeps nothing: the client carries it all. */
export async function askAhead(
  command: Command,
  input: unknown,
  { known, clock, origin }: AheadOptions,
): Promise<Ahead> {
  const checked =
    command.input === undefined ? { ok: true as const, value: {} } : await validate(command.input, input ?? {});
  // Arguments that do not fit are refused where every call's are.
  if (!checked.ok) return { kind: "ready", answered: [] };
  const asked: TaskQuestion[] = [];
  const unused = [...known];
  const hasAsked = Promise.withResolvers<"open">();
  const ask = (question: Question): Promise<Answer> => {
    const at = unused.findIndex(({ message }) => message === question.message);
    const earlier = at === -1 ? undefined : unused.splice(at, 1)[0];
    asked.push(earlier ?? { ...question, key: `q${asked.length + 1}`, askedAt: clock.now() });
    if (earlier?.answer !== undefined) return Promise.resolve(earlier.answer);
    // Questions asked side by side go out together.
    clock.after(0, () => hasAsked.resolve("open"));
    return new Promise(() => undefined);
  };
  try {
    const outcome = await Promise.race([
      askFirst(command, checked.value, { ask, origin }).then(() => "ready" as const),
      hasAsked.promise,
    ]);
    return outcome === "ready" ? { kind: "ready", answered: asked } : { kind: "open", asked };
  } catch (error) {
    return { kind: "refused", error };
  }
}

/** Puts the answers of a second leg to the questions of the first. */
export function withAnswers(
  asked: readonly TaskQuestion[],
  responses: Readonly<Record<string, unknown>>,
): TaskQuestion[] {
  return asked.map((question) =>
    question.answer === undefined && Object.hasOwn(responses, question.key)
      ? { ...question, answer: toAnswer(responses[question.key]) }
      : question,
  );
}

/** What a state leads back to. */
export type Resumed = { readonly taskId: string } | { readonly asked: readonly TaskQuestion[] };

interface Payload {
  readonly caller: string;
  readonly digest: string;
  readonly until: number;
  /** Only the process that asked ahead of a run takes its answers, so that none can be used twice. */
  readonly process?: string;
  readonly taskId?: string;
  readonly asked?: readonly TaskQuestion[];
}

/** Signs and reads `requestState`: for one caller, one tool with one set of arguments, one hour, one use. */
export class RequestStates {
  readonly #clock: Clock;
  readonly #secret: () => string;
  readonly #process = createId();
  readonly #used = new Map<string, number>();

  /** `secret` is asked for when it is first needed. */
  constructor(clock: Clock, secret: () => string) {
    this.#clock = clock;
    this.#secret = secret;
  }

  sign(to: Resumed, call: ToolCall, caller: Caller): string {
    const payload: Payload = {
      ...bindingOf(call, caller),
      until: this.#clock.now() + stateLivesMs,
      ...("taskId" in to ? { taskId: to.taskId } : { asked: to.asked, process: this.#process }),
    };
    const text = `${Buffer.from(JSON.stringify(payload)).toString("base64url")}.${randomBytes(12).toString("base64url")}`;
    return `${text}.${this.#tag(text).toString("base64url")}`;
  }

  /** Throws for anything that is not, or no longer, a state of ours for this very call. */
  resume(state: unknown, call: ToolCall, caller: Caller): Resumed {
    const payload = this.#read(state);
    const binding = bindingOf(call, caller);
    const isOurs =
      payload !== undefined &&
      payload.caller === binding.caller &&
      payload.digest === binding.digest &&
      payload.until > this.#clock.now();
    const isHere = payload?.process === undefined || payload.process === this.#process;
    const nonce = String(state).split(".")[1] ?? "";
    if (!isOurs || !isHere || this.#used.has(nonce))
      throw new ProtocolError(-32602, "Invalid or expired requestState", { reason: "invalid_request_state" });
    this.#forgetOld();
    this.#used.set(nonce, payload.until);
    return payload.taskId === undefined ? { asked: payload.asked ?? [] } : { taskId: payload.taskId };
  }

  #forgetOld(): void {
    const now = this.#clock.now();
    for (const [nonce, until] of this.#used) {
      if (until > now) break;
      this.#used.delete(nonce);
    }
  }

  #read(state: unknown): Payload | undefined {
    if (typeof state !== "string" || state.length > maxStateLength) return undefined;
    const end = state.lastIndexOf(".");
    const text = state.slice(0, end);
    const given = Buffer.from(state.slice(end + 1), "base64url");
    const expected = this.#tag(text);
    const isGenuine =
      end > 0 &&
      given.length === expected.length &&
      timingSafeEqual(given, expected) &&
      given.toString("base64url") === state.slice(end + 1);
    return isGenuine
      ? (JSON.parse(Buffer.from(text.split(".")[0] ?? "", "base64url").toString("utf8")) as Payload)
      : undefined;
  }

  #tag(text: string): Buffer {
    return createHmac("sha256", createHash("sha256").update(`meanwhile request state ${this.#secret()}`).digest())
      .update(text)
      .digest();
  }
}

function bindingOf(call: ToolCall, caller: Caller): { caller: string; digest: string } {
  return { caller: callerKey(caller), digest: digestOf(call.name, call.arguments ?? {}) };
}
