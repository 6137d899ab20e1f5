import { createHash, createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { Clock } from "../clock.ts";
import { type Caller, callerKey } from "../command/caller.ts";
import { digestOf } from "../task/digest.ts";
import type { SharedState } from "../task/shared-state.ts";
import type { TaskQuestion } from "../task/task.ts";
import { badParams } from "./params.ts";
import type { ToolCall } from "./parts.ts";
import { toInputRequest } from "./questions.ts";
import type { Result } from "./request.ts";

export const stateLivesMs = 60 * 60 * 1000;
const maxStateLength = 64 * 1024;

/** What a state leads back to. */
export type Resumed = { readonly taskId: string } | { readonly asked: readonly TaskQuestion[] };

interface Payload {
  /** Stands for the caller and the project: clients can read what they carry, and no key is sent to them. */
  readonly owner: string;
  readonly digest: string;
  readonly until: number;
  readonly taskId?: string;
  readonly asked?: readonly TaskQuestion[];
}

/**
 * Signs and reads `requestState`: for one caller, one tool of one project with one set of arguments, one hour, one use.
 * Whichever server on the store has signed one, any of them reads it.
 */
export class RequestStates {
  readonly #clock: Clock;
  readonly #project: string;
  readonly #openShared: () => Promise<SharedState>;

  /** What is shared is opened when it is first needed. */
  constructor(clock: Clock, project: string, openShared: () => Promise<SharedState>) {
    this.#clock = clock;
    this.#project = project;
    this.#openShared = openShared;
  }

  async sign(to: Resumed, call: ToolCall, caller: Caller): Promise<string> {
    const payload: Payload = {
      ...this.#bindingOf(call, caller),
      until: this.#clock.now() + stateLivesMs,
      ...("taskId" in to ? { taskId: to.taskId } : { asked: to.asked }),
    };
    const text = `${Buffer.from(JSON.stringify(payload)).toString("base64url")}.${randomBytes(12).toString("base64url")}`;
    return `${text}.${(await this.#tag(text)).toString("base64url")}`;
  }

  /** What a client is sent away with: questions, and the state that leads back. */
  async toInputRequired(asked: readonly TaskQuestion[], to: Resumed, call: ToolCall, caller: Caller): Promise<Result> {
    const open = asked.filter(({ answer }) => answer === undefined);
    // The state that leads back is void before the question is.
    const until = this.#clock.now() + stateLivesMs;
    const limited = open.map((question) => ({ ...question, until: Math.min(question.until ?? until, until) }));
    return {
      resultType: "input_required",
      inputRequests: Object.fromEntries(limited.map((question) => [question.key, toInputRequest(question)])),
      requestState: await this.sign(to, call, caller),
    };
  }

  /** Throws for anything that is not, or no longer, a state of ours for this very call. */
  async resume(state: unknown, call: ToolCall, caller: Caller): Promise<Resumed> {
    const payload = await this.#read(state);
    const binding = this.#bindingOf(call, caller);
    const isOurs =
      payload !== undefined &&
      payload.owner === binding.owner &&
      payload.digest === binding.digest &&
      payload.until > this.#clock.now();
    const nonce = String(state).split(".")[1] ?? "";
    if (!isOurs || !(await this.#isFirst(nonce)))
      throw badParams("Invalid or expired requestState", { reason: "invalid_request_state" });
    return payload.taskId === undefined ? { asked: payload.asked ?? [] } : { taskId: payload.taskId };
  }

  #bindingOf(call: ToolCall, caller: Caller): Pick<Payload, "owner" | "digest"> {
    const owner = createHash("sha256")
      .update(JSON.stringify([this.#project, callerKey(caller)]))
      .digest("base64url");
    return { owner, digest: digestOf(call.name, call.arguments ?? {}) };
  }

  async #isFirst(nonce: string): Promise<boolean> {
    return await (await this.#openShared()).useOnce(`state ${nonce}`, stateLivesMs);
  }

  async #read(state: unknown): Promise<Payload | undefined> {
    if (typeof state !== "string" || state.length > maxStateLength) return undefined;
    const end = state.lastIndexOf(".");
    const text = state.slice(0, end);
    const given = Buffer.from(state.slice(end + 1), "base64url");
    const expected = await this.#tag(text);
    const isGenuine =
      end > 0 &&
      given.length === expected.length &&
      timingSafeEqual(given, expected) &&
      given.toString("base64url") === state.slice(end + 1);
    return isGenuine
      ? (JSON.parse(Buffer.from(text.split(".")[0] ?? "", "base64url").toString("utf8")) as Payload)
      : undefined;
  }

  async #tag(text: string): Promise<Buffer> {
    const secret = await (await this.#openShared()).secret();
    return createHmac("sha256", createHash("sha256").update(`meanwhile request state ${secret}`).digest())
      .update(text)
      .digest();
  }
}
