import { sleep } from "../../../clock.ts";
import { fieldsOf, type Json, textOf } from "../../../wire/json.ts";
import { metaKeys } from "../../../wire/request-envelope.ts";
import { legacyRevision, modernRevision } from "../../../wire/revisions.ts";
import type { Verdict } from "../../check.ts";
import type { ProbeAnswer } from "../../wire/probe-session.ts";
import type { Callable } from "../callables.ts";
import { likelySlowFirst, mayBeTask } from "../likely-slow.ts";
import type { Probe } from "../probe.ts";
import { createdTask, isTerminal, pollMsOf } from "./created-task.ts";
import { askEach, askTask, type EachOptions, type Generation, type Judgement, type Talk } from "./task-generation.ts";

/** A task that the server has made for us. */
export interface MadeTask {
  readonly taskId: string;
  /** As the call was answered. */
  readonly task: Json;
  readonly callable: Callable;
  readonly params: Json;
  readonly answer: ProbeAnswer;
  /** Monotonic milliseconds when the answer came. */
  readonly at: number;
}

/** None was made. */
export interface NoTask {
  readonly why: string;
  /** The last call and what came, where there was one. */
  readonly last?: { readonly callable: Callable; readonly params: Json; readonly answer: ProbeAnswer };
}

interface MakeTaskOptions {
  /** In 2025-11-25: how long the task is to be kept. */
  readonly ttl?: number;
  /** Other arguments than the usual ones; undefined leaves a tool out. */
  readonly toArguments?: (callable: Callable) => Json | undefined;
}

/** A call that is no task at once is only waited for so long: it may be a slow one that the server runs to its end. */
const createMs = 4_000;
const maxTries = 2;

/**
 * Makes a task with a tool that may be called; in 2026-07-28, where the server decides, the second likeliest tool is
 * tried too.
 */
export async function makeTask(talk: Talk, options: MakeTaskOptions = {}): Promise<MadeTask | NoTask> {
  const candidates = candidatesOf(talk.probe, talk.generation, options);
  let last: NoTask["last"];
  for (const callable of candidates.slice(0, talk.isModern ? maxTries : 1)) {
    const params = paramsOf(talk, callable, options);
    const { id, answer: coming } = talk.session.start("tools/call", params, {
      timeoutMs: Math.min(createMs, talk.probe.requestMs),
    });
    const answer = await coming;
    const task = createdTask(talk.generation, answer);
    const taskId = textOf(task?.taskId);
    if (taskId !== undefined && taskId !== "") talk.ids.add(taskId);
    last = { callable, params, answer };
    if (task === undefined) {
      if (answer.message === undefined) await talk.session.notify("notifications/cancelled", { requestId: id });
      continue;
    }
    if (taskId === undefined || taskId === "")
      return { why: "The server makes no task that could be followed; see tasks/create.", last };
    if (!isTerminal(task)) talk.live.add(taskId);
    return { taskId, task, callable, params, answer, at: talk.probe.clock.monotonic() };
  }
  return { why: explain(talk, last), ...(last !== undefined && { last }) };
}

/** Makes a task in each declared generation, and has it judged; skipped where none can be made. */
export function askMade(
  probe: Probe,
  { ttl, ...options }: EachOptions & Pick<MakeTaskOptions, "ttl">,
  judge: (talk: Talk, made: MadeTask) => Promise<Judgement>,
): Promise<Verdict> {
  return askEach(probe, { unless: noTool(probe), ...options }, async (talk) => {
    const made = await makeTask(talk, ttl === undefined ? {} : { ttl });
    return isMade(made) ? await judge(talk, made) : { skip: made.why };
  });
}

export function isMade(made: MadeTask | NoTask): made is MadeTask {
  return "taskId" in made;
}

/** Why no task can be made in a generation, as far as the list of tools tells. */
export function noTool(probe: Probe, options: MakeTaskOptions = {}): (generation: Generation) => string | undefined {
  return (generation) => {
    if (candidatesOf(probe, generation, options).length > 0) return undefined;
    if (generation === legacyRevision)
      return "No tool that may be called says that it can run as a task (execution.taskSupport); name one with --tool and --args.";
    return "No tool says that it only reads (readOnlyHint), with arguments that can be guessed; name one with --tool and --args.";
  };
}

function candidatesOf(
  { callables }: Probe,
  generation: Generation,
  { toArguments }: MakeTaskOptions,
): readonly Callable[] {
  return likelySlowFirst(callables)
    .filter((callable) => generation === modernRevision || mayBeTask(callable))
    .flatMap((callable) => {
      const changed = toArguments === undefined ? callable.arguments : toArguments(callable);
      return changed === undefined ? [] : [{ ...callable, arguments: changed }];
    });
}

function paramsOf({ isModern }: Talk, { tool, arguments: chosen }: Callable, options: MakeTaskOptions): Json {
  const call = { name: tool.name, arguments: chosen };
  return isModern ? call : { ...call, task: options.ttl === undefined ? {} : { ttl: options.ttl } };
}

function explain(talk: Talk, last: NoTask["last"]): string {
  if (last === undefined) return noTool(talk.probe)(talk.generation) ?? "No tool fits.";
  const { error } = last.answer;
  if (error !== undefined)
    return `The call of ${talk.probe.show(last.callable.tool.name, 80)} was answered with error ${String(error.code)}; give arguments that work with --tool and --args.`;
  if (last.answer.result?.isError === true)
    return `${talk.probe.show(last.callable.tool.name, 80)} does not take the arguments that were guessed; give others with --tool and --args.`;
  return talk.isModern
    ? "No tool that was called was answered with a task; name a slow one with --tool and --args."
    : "The server makes no task; see tasks/create.";
}

/** What tasks/get said, in order. */
interface SeenState {
  readonly task: Json;
  readonly answer: ProbeAnswer;
  readonly at: number;
}

export interface Followed {
  readonly seen: readonly SeenState[];
  /** Why it was not looked at any longer. */
  readonly end: "terminal" | "unknown" | "asks" | "late" | "broken";
  /** The answer that ended it. */
  readonly answer: ProbeAnswer;
}

/** Asks how a task stands until it ends, is forgotten, asks something, or the time is over. */
export async function followMade(
  talk: Talk,
  { taskId, task }: Pick<MadeTask, "taskId" | "task">,
  untilMs: number,
): Promise<Followed> {
  const { clock, signal } = talk.probe;
  const seen: SeenState[] = [];
  const over = clock.monotonic() + untilMs;
  let pollMs = pollMsOf(talk.generation, task);
  for (;;) {
    const answer = await askTask(talk, "tasks/get", taskId);
    const at = clock.monotonic();
    if (answer.result === undefined) {
      if (answer.error?.code === -32602) talk.live.delete(taskId);
      return { seen, end: answer.error?.code === -32602 ? "unknown" : "broken", answer };
    }
    seen.push({ task: answer.result, answer, at });
    if (isTerminal(answer.result)) {
      talk.live.delete(taskId);
      return { seen, end: "terminal", answer };
    }
    if (answer.result.status === "input_required") return { seen, end: "asks", answer };
    pollMs = pollMsOf(talk.generation, answer.result) ?? pollMs;
    const pause = Math.min(Math.max(pollMs ?? 250, 50), 1_000);
    if (at + pause > over) return { seen, end: "late", answer };
    await sleep(clock, pause, signal);
  }
}

/** How long a task is followed in a check that needs its end. */
export function patienceMs({ isFull }: { readonly isFull: boolean }): number {
  return isFull ? 20_000 : 8_000;
}

/** Why a task's end was not seen, as a reason to skip. */
export function whyNoEnd(end: Followed["end"], untilMs: number): string {
  if (end === "asks")
    return "The task asks its user something, and nobody is here to answer; name another tool with --tool and --args.";
  if (end === "late")
    return `The task had not ended after ${untilMs / 1000} s; name a quicker tool with --tool and --args.`;
  return "The task could not be followed to its end; see tasks/lifecycle.";
}

/** The fields of a result that are a tool's own. */
export function toolResult(result: Json): Json {
  const { _meta, resultType: _type, ...own } = result;
  const meta = Object.fromEntries(Object.entries(fieldsOf(_meta)).filter(([key]) => key !== metaKeys.relatedTask));
  return { ...own, ...(Object.keys(meta).length > 0 && { _meta: meta }) };
}
