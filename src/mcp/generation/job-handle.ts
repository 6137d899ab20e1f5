import { toTimestamp } from "../../clock.ts";
import { isForm, isForPerson, needsPerson } from "../../command/foreign-question.ts";
import type { JsonSchema } from "../../command/schema.ts";
import type { Budget } from "../../host/budget.ts";
import { thisProgram } from "../../program/program.ts";
import { estimatedSeconds, statusLine, timeLeft } from "../../task/status-line.ts";
import { isTerminal, openQuestions, type Task, type TaskQuestion, type TaskStatus } from "../../task/task.ts";
import { isUnclaimable } from "../../task/transitions.ts";

/**
 * An estimate of the rest is no promise: a follow-up that comes a moment before the end costs a model one more turn.
 */
const restMarginPart = 0.25;
const minRestMs = 10_000;
/** Only a person can start a task that no worker may claim: a client that waits for it is told so again at once. */
const unclaimableWaitMs = 1_000;

/** A job as data: what it is, how far, and the one thing to do next. */
export interface JobHandle {
  readonly job_id: string;
  readonly status: TaskStatus;
  readonly estimated_runtime_seconds?: number;
  readonly progress: { readonly percentage?: number; readonly message?: string; readonly seconds_left?: number };
  readonly questions?: readonly {
    readonly key: string;
    readonly message: string;
    readonly schema: JsonSchema;
    readonly answer_until?: string;
    readonly only_a_person_may_answer?: true;
  }[];
  readonly next_action: { readonly tool: string; readonly arguments: Readonly<Record<string, unknown>> };
}

interface HandleFacts {
  readonly now: number;
  readonly budget: Budget;
  /** The name that a follow-up tool goes by here. */
  readonly nameOf: (tool: string) => string;
  /** The client is listed `task_result` alone, which then takes answers too. */
  readonly isAlone: boolean;
}

/** The handle of a task, for a client whose host waits as long as `budget` says. */
export function toJobHandle(task: Task, facts: HandleFacts): JobHandle {
  const left = timeLeft(task, facts.now);
  const estimate = estimatedSeconds(task);
  const open = isTerminal(task) ? [] : openQuestions(task).filter(isForPerson);
  const questions = open.map((question) => ({
    key: question.key,
    message: question.message,
    schema: question.schema,
    ...(question.until !== undefined && { answer_until: toTimestamp(question.until) }),
    ...(needsPerson(question) && { only_a_person_may_answer: true as const }),
  }));
  return {
    job_id: task.taskId,
    status: task.status,
    ...(estimate !== undefined && { estimated_runtime_seconds: estimate }),
    progress: {
      ...(task.progress?.percentage !== undefined && { percentage: task.progress.percentage }),
      ...(task.progress?.message !== undefined && { message: task.progress.message }),
      ...(left !== undefined && { seconds_left: Math.ceil(left) }),
    },
    ...(questions.length > 0 && { questions }),
    next_action: nextAction(task, left, facts),
  };
}

/** True for what a model may answer for its user, with a follow-up tool. */
export function isForModel(question: TaskQuestion): boolean {
  return isForm(question) && !needsPerson(question);
}

function nextAction(
  task: Task,
  secondsLeft: number | undefined,
  { now, budget, nameOf, isAlone }: HandleFacts,
): JobHandle["next_action"] {
  const answerable = isTerminal(task) ? [] : openQuestions(task).filter(isForModel);
  if (answerable.length > 0) {
    const answers = Object.fromEntries(
      answerable.map(({ key, schema }) => [
        key,
        Object.fromEntries(Object.keys(schema.properties ?? {}).map((field) => [field, "…"])),
      ]),
    );
    return isAlone
      ? { tool: nameOf("task_result"), arguments: { job_id: task.taskId, answer: answers } }
      : { tool: nameOf("task_answer"), arguments: { job_id: task.taskId, answers } };
  }
  const restMs = isUnclaimable(task)
    ? unclaimableWaitMs
    : secondsLeft === undefined
      ? Number.POSITIVE_INFINITY
      : Math.max(minRestMs, secondsLeft * 1000 * (1 + restMarginPart));
  const wait_seconds = Math.max(1, Math.floor(Math.min(budget.handleAfterMs, restMs) / 1000));
  // `seen` changes with every answer: some hosts stop a model that repeats the same call.
  return {
    tool: nameOf("task_result"),
    arguments: { job_id: task.taskId, wait_seconds, seen: seenOf(task, now) },
  };
}

/** The record's version; a silent task's does not move, so the time does. */
function seenOf(task: Task, now: number): number {
  return isTerminal(task) ? task.version : Math.max(task.version, Math.floor((now - task.createdAt) / 100));
}

/** The same in a sentence, for the model. */
export function describeJob(task: Task, now: number, { tool }: JobHandle["next_action"]): string {
  const line = statusLine(task, now);
  if (isTerminal(task)) return `${task.command} has ended (${task.status}). Get its result with ${tool}.`;
  const [asked] = openQuestions(task);
  const question = openQuestions(task).find(isForPerson);
  if (asked !== undefined && question === undefined)
    return `${task.command} waits for ${asked.message}. Get its result with ${tool} and the arguments of next_action.`;
  if (question !== undefined && needsPerson(question))
    return `${task.command} asks «${question.message}». Only a person may answer that${whereToAnswer(task)}. Then get the result with ${tool}.${waitsUntil(question)}`;
  if (question !== undefined)
    return `${task.command} asks «${question.message}». Answer with ${tool}, filling in the arguments of next_action.${waitsUntil(question)}`;
  if (isUnclaimable(task))
    return `${task.command} is queued. ${line} It does not go on by itself: tell the user. Then get its result with ${tool} and the arguments of next_action.`;
  const state = task.status === "queued" ? "is queued" : "is still running";
  return `${task.command} ${state}${line === "" ? "" : `: ${line}`}${/[.!?…]$/.test(line) ? "" : "."} It goes on by itself. Get its result with ${tool} and the arguments of next_action.`;
}

function whereToAnswer({ taskId }: Task): string {
  const typed = thisProgram.typed(`tasks answer ${taskId}`);
  return typed === undefined ? ", in the app that runs this server" : `: ${typed}`;
}

function waitsUntil({ until }: TaskQuestion): string {
  return until === undefined ? "" : ` It waits for that until ${toTimestamp(until)}, then it ends.`;
}
