import { RequestError } from "../errors.ts";
import { cut } from "../wire/errors.ts";
import { fieldsOf, isObject, type Json, numberOf, textOf } from "../wire/json.ts";
import type { Answer, Question, TaskState, TaskStatus, Tool, ToolResult } from "./client.ts";
import { answerMs, type Connection } from "./connection.ts";
import { InputRequired } from "./errors.ts";
import { firstTextOf, toToolResult } from "./message.ts";
import { fromHandle } from "./progress.ts";
import type { Road, Snapshot, Watcher } from "./road.ts";

/**
 * Handles for clients without tasks: an ordinary tool result that names a job and, as its next action, the tool that
 * waits for it. The tools beside that one are found by its name: `acme_task_result` has an `acme_task_cancel`.
 */

export interface Handle {
  readonly jobId: string;
  readonly status: string;
  /** What to call next; a job without it is told about by notifications. */
  readonly next: { readonly tool: string; readonly arguments: Json } | undefined;
  readonly fields: Json;
}

const resultTool = "task_result";
const waitSeconds = 30;
/** A tool that waits is given this much more than it was asked to wait. */
const graceMs = 60_000;

/** Reads the handle in a result; undefined when the result is a result. */
export function readHandle(result: Json): Handle | undefined {
  if (result.isError === true) return undefined;
  for (const fields of handleCandidates(result)) {
    const jobId = textOf(fields.job_id);
    const status = textOf(fields.status);
    if (jobId === undefined || jobId === "" || status === undefined) continue;
    const { tool, arguments: given } = fieldsOf(fields.next_action);
    const next =
      typeof tool === "string" && (given === undefined || isObject(given))
        ? { tool, arguments: fieldsOf(given) }
        : undefined;
    if (next !== undefined || (isJobStatus(status) && fields.estimated_runtime_seconds !== undefined))
      return { jobId, status, next, fields };
  }
  return undefined;
}

function isJobStatus(status: string): boolean {
  return status === "queued" || status === "running";
}

function handleCandidates({ structuredContent, content }: Json): Json[] {
  const given = structuredContent === undefined ? jsonIn(content) : structuredContent;
  return [fieldsOf(fieldsOf(given).data), fieldsOf(given)];
}

/** The JSON that a text mirrors, after whatever sentence stands before it. */
function jsonIn(content: unknown): unknown {
  const text = firstTextOf({ content });
  for (const part of [text, text.slice(text.lastIndexOf("\n") + 1)]) {
    if (!part.trimStart().startsWith("{") || part.length > 100_000) continue;
    try {
      return JSON.parse(part);
    } catch {
      // Then it is no mirror.
    }
  }
  return undefined;
}

/**
 * True when a handle's next action may be done without asking anybody. A result can hold text from anywhere, so what it
 * says to call next must be a tool that only follows up this job: one of the known names, or one that is declared to
 * change nothing.
 */
export function isFollowable({ jobId, next }: Handle, tools: readonly Tool[]): boolean {
  if (next === undefined) return true;
  const tool = tools.find(({ name }) => name === next.tool);
  const isHarmless = followUpName.test(next.tool) || tool?.annotations?.readOnlyHint === true;
  return (
    tool !== undefined &&
    isHarmless &&
    next.arguments.job_id === jobId &&
    fieldsOf(tool.inputSchema.properties).job_id !== undefined
  );
}

const followUpName = /(^|[_./-])task_(result|status|answer)$/;

/** What stands before `task_result` in this server's tools; undefined when it has none. */
export function followUpPrefix(tools: readonly Tool[]): string | undefined {
  const isFollowUp = ({ name, inputSchema }: Tool) =>
    new RegExp(`(^|[_./-])${resultTool}$`).test(name) && fieldsOf(inputSchema.properties).job_id !== undefined;
  return tools.find(isFollowUp)?.name.slice(0, -resultTool.length);
}

export interface PlainFacts {
  readonly connection: Connection;
  readonly jobId: string;
  /** The next thing to do; undefined: wait with `task_result`. */
  readonly next?: Handle["next"];
  /** Undefined when the server has none of the tools. */
  readonly prefix: string | undefined;
}

export class PlainRoad implements Road {
  readonly taskId: string;
  readonly isWaiting = true;
  readonly #facts: PlainFacts;
  readonly #answered = new Set<string>();
  #next: Handle["next"];

  constructor(facts: PlainFacts) {
    this.#facts = facts;
    this.taskId = facts.jobId;
    this.#next = facts.next;
  }

  async look({
    signal,
    wait = false,
  }: {
    readonly signal?: AbortSignal | undefined;
    readonly wait?: boolean;
  }): Promise<Snapshot> {
    const status = this.#toolName("task_status");
    if (!wait && status !== undefined)
      return this.#readStatus(await this.#call(status, { job_id: this.taskId }, signal));
    const next = this.#next ?? {
      tool: this.#toolName(resultTool) ?? resultTool,
      arguments: { job_id: this.taskId, wait_seconds: waitSeconds },
    };
    // An action that answers a question is the person's to fill in: until then there is only waiting.
    const isAnswer = next.tool.endsWith("task_answer");
    const waiting = isAnswer
      ? {
          tool: this.#toolName(resultTool) ?? resultTool,
          arguments: { job_id: this.taskId, wait_seconds: waitSeconds },
        }
      : next;
    return await this.#readResult(await this.#call(waiting.tool, waiting.arguments, signal), signal);
  }

  watch(): () => void {
    return () => undefined;
  }

  async meet({ state }: Snapshot, { ask }: Watcher): Promise<void> {
    for (const question of state.questions ?? []) {
      if (this.#answered.has(question.key)) continue;
      if (isForPersons(question))
        throw new InputRequired(question, `only a person may; they can with: meanwhile tasks answer ${this.taskId}`);
      if (ask === undefined)
        throw new InputRequired(question, `answer the job ${this.taskId}, then ask for its result again.`);
      const answer = await ask(question);
      this.#answered.add(question.key);
      await this.answer({ [question.key]: answer });
    }
  }

  async result(): Promise<ToolResult> {
    const name = this.#toolName(resultTool);
    if (name === undefined) throw this.#noTools();
    return toToolResult(await this.#call(name, { job_id: this.taskId, wait_seconds: 0 }));
  }

  /** A `no` cannot be sent this way: a job that gets one is stopped. */
  async answer(answers: Readonly<Record<string, Answer>>): Promise<void> {
    const given = Object.entries(answers).flatMap(([key, answer]) =>
      answer.action === "accept" ? [[key, answer.content] as const] : [],
    );
    if (given.length < Object.keys(answers).length) return await this.cancel();
    const name = this.#toolName("task_answer");
    if (name === undefined) throw this.#noTools();
    const args = { job_id: this.taskId, answers: Object.fromEntries(given) };
    // Not repeated: what has been answered is no longer asked, and the second time would look like a refusal.
    refuseError(await this.#facts.connection.request("tools/call", { name, arguments: args }, { limitMs: answerMs }));
  }

  async cancel(signal?: AbortSignal): Promise<void> {
    const name = this.#toolName("task_cancel");
    if (name === undefined) throw this.#noTools();
    refuseError(await this.#call(name, { job_id: this.taskId }, signal));
  }

  #noTools(): RequestError {
    return new RequestError(
      "method",
      "This server has no tasks, and no tools such as task_result to follow its work with.",
    );
  }

  #toolName(name: string): string | undefined {
    const { prefix } = this.#facts;
    return prefix === undefined ? undefined : `${prefix}${name}`;
  }

  #readStatus(result: Json): Snapshot {
    refuseError(result);
    const handle = readHandle(result);
    if (handle?.jobId !== this.taskId)
      throw new RequestError("request", `The server did not say how the job ${cut(this.taskId, 100)} stands.`);
    this.#next = handle.next;
    return toSnapshot(handle);
  }

  /** Another handle, or the result itself. */
  async #readResult(result: Json, signal: AbortSignal | undefined): Promise<Snapshot> {
    // Some other job's handle would be followed for ever, so it counts as the result.
    if (readHandle(result)?.jobId === this.taskId) return this.#readStatus(result);
    const status = this.#toolName("task_status");
    const end =
      result.isError === true && status !== undefined
        ? readHandle(await this.#call(status, { job_id: this.taskId }, signal))
        : undefined;
    if (end?.status === "cancelled") return toSnapshot(end);
    return {
      state: { taskId: this.taskId, status: result.isError === true ? "failed" : "completed" },
      result: toToolResult(result),
    };
  }

  #call(name: string, args: Json, signal?: AbortSignal): Promise<Json> {
    const limitMs = answerMs + graceMs + (numberOf(args.wait_seconds) ?? 0) * 1000;
    return this.#facts.connection.request(
      "tools/call",
      { name, arguments: args },
      { signal, isRepeatable: true, limitMs },
    );
  }
}

function refuseError(result: Json): void {
  if (result.isError !== true) return;
  throw new RequestError("params", cut(firstTextOf(result) || "The server refused, without saying why."));
}

type PlainQuestion = Question & { readonly isForPersons?: true };

function isForPersons(question: PlainQuestion): boolean {
  return question.isForPersons === true;
}

const terminal: readonly string[] = ["completed", "failed", "cancelled"];

/** A job as its handle describes it. One that has ended still has to be fetched. */
export function toSnapshot({ jobId, status, fields }: Handle): Snapshot {
  const questions = (Array.isArray(fields.questions) ? fields.questions : []).flatMap(
    (item: unknown): PlainQuestion[] => {
      const { key, message, schema, only_a_person_may_answer } = fieldsOf(item);
      if (typeof key !== "string") return [];
      return [
        {
          key,
          message: textOf(message) ?? "",
          schema: fieldsOf(schema),
          taskId: jobId,
          ...(only_a_person_may_answer === true && { isForPersons: true }),
        },
      ];
    },
  );
  const message = textOf(fieldsOf(fields.progress).message);
  const isAsked = questions.length > 0 && !terminal.includes(status);
  const state: TaskState = {
    taskId: jobId,
    status: isAsked ? "input_required" : terminal.includes(status) ? (status as TaskStatus) : "working",
    ...(isAsked
      ? { statusMessage: `asks: ${questions[0]?.message}` }
      : message !== undefined && { statusMessage: message }),
    ...(questions.length > 0 && { questions }),
  };
  return { state, progress: fromHandle(fields) };
}
