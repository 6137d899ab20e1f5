import { fieldsOf, isObject, type Json, textOf } from "../../wire/json.ts";
import type { Question, TaskState, TaskStatus, Tool } from "../client.ts";
import { firstTextOf } from "../tool-result.ts";
import { readUntil } from "./asked-questions.ts";
import type { Snapshot } from "./remote-task.ts";
import { fromHandle } from "./reported-progress.ts";

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

export const resultTool = "task_result";

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
    const isJob = fields.estimated_runtime_seconds !== undefined || taskIdOf(result) === jobId;
    if (next !== undefined || (isJobStatus(status) && isJob)) return { jobId, status, next, fields };
  }
  return undefined;
}

/** The task of a call, as a server of ours says beside its result. */
function taskIdOf({ _meta }: Json): unknown {
  return fieldsOf(fieldsOf(_meta)["meanwhile/call"]).taskId;
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

type PlainQuestion = Question & { readonly isForPersons?: true };

export function isForPersons(question: PlainQuestion): boolean {
  return question.isForPersons === true;
}

const terminal: readonly string[] = ["completed", "failed", "cancelled"];

/** A job as its handle describes it. One that has ended still has to be fetched. */
export function toSnapshot({ jobId, status, fields }: Handle): Snapshot {
  const questions = (Array.isArray(fields.questions) ? fields.questions : []).flatMap(
    (item: unknown): PlainQuestion[] => {
      const { key, message, schema, only_a_person_may_answer, answer_until } = fieldsOf(item);
      if (typeof key !== "string") return [];
      return [
        {
          key,
          message: textOf(message) ?? "",
          schema: fieldsOf(schema),
          taskId: jobId,
          ...readUntil(answer_until),
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
