import { RequestError } from "../../errors.ts";
import { thisProgram } from "../../program/program.ts";
import { type Json, numberOf } from "../../wire/json.ts";
import { cut } from "../../wire/peer-errors.ts";
import type { Answer, ToolResult } from "../client.ts";
import { InputRequired } from "../client-errors.ts";
import { answerMs, type ServerConnection } from "../connection/server-connection.ts";
import { firstTextOf, toToolResult } from "../tool-result.ts";
import { type Handle, isForPersons, readHandle, resultTool, toSnapshot } from "./plain-handle.ts";
import type { LookOptions, RemoteTask, Snapshot, Watcher } from "./remote-task.ts";

const waitSeconds = 30;
/** A tool that waits is given this much more than it was asked to wait. */
const graceMs = 60_000;

export interface PlainFacts {
  readonly connection: ServerConnection;
  readonly jobId: string;
  /** The next thing to do; undefined: wait with `task_result`. */
  readonly next?: Handle["next"];
  /** Undefined when the server has none of the tools. */
  readonly prefix: string | undefined;
}

export class PlainJob implements RemoteTask {
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

  async look({ signal, wait = false }: LookOptions): Promise<Snapshot> {
    const status = this.#toolName("task_status");
    if (!wait && status !== undefined)
      return this.#readStatus(await this.#call(status, { job_id: this.taskId }, signal));
    // An action that answers a question is the person's to fill in: until then there is only waiting.
    const next = this.#next !== undefined && isAnswering(this.#next) ? undefined : this.#next;
    const waiting = next ?? {
      tool: this.#toolName(resultTool) ?? resultTool,
      arguments: { job_id: this.taskId, wait_seconds: waitSeconds },
    };
    return await this.#readResult(await this.#call(waiting.tool, waiting.arguments, signal), signal);
  }

  watch(): () => void {
    return () => undefined;
  }

  async answerAsked({ state }: Snapshot, { ask }: Watcher): Promise<void> {
    for (const question of state.questions ?? []) {
      if (this.#answered.has(question.key)) continue;
      if (isForPersons(question))
        throw new InputRequired(
          question,
          `only a person may; they can with: ${thisProgram.name} tasks answer ${this.taskId}`,
        );
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

/** True for `task_answer`, and for `task_result` with an answer. */
function isAnswering({ tool, arguments: given }: NonNullable<Handle["next"]>): boolean {
  return tool.endsWith("task_answer") || given.answer !== undefined;
}

function refuseError(result: Json): void {
  if (result.isError !== true) return;
  throw new RequestError("params", cut(firstTextOf(result) || "The server refused, without saying why."));
}
