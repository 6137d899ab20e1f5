import { fieldsOf, textOf } from "../../wire/json.ts";
import type { ProbeAnswer, ProbeExchange } from "../wire/probe-session.ts";
import type { Callable } from "./callables.ts";
import { failureIn, failureOf } from "./failure.ts";

/** What became of a tool's calls with the arguments that were chosen for it: the best that was seen. */
export interface CalledTool {
  readonly tool: string;
  /** The user named it. */
  readonly isNamed: boolean;
  /** `task`: it was answered with a task whose end nobody saw. `unanswered`: nobody waited for its end. */
  readonly outcome: (typeof callOutcomes)[number];
  /** What a failed call was answered with, or why there was none. */
  readonly note?: string;
  /** While it is found out: this is how a task ended. */
  readonly isEnd?: boolean;
}

/** Best first. */
export const callOutcomes = ["succeeded", "task", "unanswered", "failed", "not called"] as const;

/** True for a call that brought what it was made for, or is on its way to. */
export function isSuccess({ outcome }: Pick<CalledTool, "outcome">): boolean {
  return outcome === "succeeded" || outcome === "task";
}

/** True where a call that the user asked for did not succeed. */
export function isNamedFailure({ isNamed, outcome }: CalledTool): boolean {
  return isNamed && (outcome === "failed" || outcome === "not called");
}

/** The sentence that stands before everything else; undefined where every call that the user named worked. */
export function tellNamedFailures(calls: readonly CalledTool[]): string | undefined {
  const told = calls.filter(isNamedFailure).map(({ tool, outcome, note }) => {
    const how = outcome === "failed" ? "failed" : "could not be called";
    return `${tool}, which you named, ${how}${note === undefined ? "" : `: ${note.replace(/\.$/, "")}`}`;
  });
  return told.length === 0 ? undefined : `${told.join("; ")}.`;
}

/** Keeps of every tool the best that became of its calls, whichever check made them. */
export class CallLog {
  readonly #best = new Map<string, CalledTool>();
  /** Whose task it is. */
  readonly #tasks = new Map<string, Callable>();
  readonly #onBetter: (call: CalledTool) => void;

  constructor(onBetter: (call: CalledTool) => void = () => undefined) {
    this.#onBetter = onBetter;
  }

  /** Looks at what was asked and answered; `show` makes a server's words fit to be shown. */
  note(asked: ProbeExchange, callables: readonly Callable[], show: (text: string) => string): void {
    if (asked.method === "tools/call") this.#noteCall(asked, callables, show);
    if (asked.method !== "tasks/get" && asked.method !== "tasks/result") return;
    const callable = this.#tasks.get(textOf(asked.params.taskId) ?? "");
    const seen = callable === undefined ? undefined : taskOutcome(asked);
    if (callable !== undefined && seen !== undefined) this.#keep(callable, seen, show);
  }

  #noteCall(
    { params, answer, isCancelled }: ProbeExchange,
    callables: readonly Callable[],
    show: (text: string) => string,
  ): void {
    const sent = JSON.stringify(params.arguments ?? {});
    // Calls that are wrong on purpose have other arguments.
    const callable = callables.find(
      ({ tool, arguments: own }) => tool.name === params.name && JSON.stringify(own) === sent,
    );
    if (callable === undefined) return;
    const taskId =
      textOf(fieldsOf(answer.result?.task).taskId) ??
      (answer.result?.resultType === "task" ? textOf(answer.result.taskId) : undefined);
    if (taskId !== undefined && this.#tasks.size < maxTasks) this.#tasks.set(taskId, callable);
    this.#keep(
      callable,
      taskId !== undefined ? { outcome: "task" } : isCancelled ? { outcome: "unanswered" } : callOutcome(answer),
      show,
    );
  }

  #keep({ tool, isNamed }: Callable, { outcome, note, isEnd }: Seen, show: (text: string) => string): void {
    const known = this.#best.get(tool.name);
    const call: CalledTool = {
      tool: tool.name,
      isNamed,
      outcome,
      ...(note !== undefined && { note: show(note) }),
      ...(isEnd === true && { isEnd }),
    };
    if (betterOf(known, call) === known) return;
    this.#best.set(tool.name, call);
    this.#onBetter(call);
  }
}

const maxTasks = 1_000;

type Seen = Pick<CalledTool, "outcome" | "note" | "isEnd">;

/** The better one of two that are about the same tool; the end of a task says more than that there is one. */
export function betterOf(one: CalledTool | undefined, other: CalledTool): CalledTool {
  if (one?.outcome === "task" && other.isEnd === true) return other;
  return one !== undefined && rank(one.outcome) <= rank(other.outcome) ? one : other;
}

function rank(outcome: CalledTool["outcome"]): number {
  return callOutcomes.indexOf(outcome);
}

function callOutcome(answer: ProbeAnswer): Seen {
  if (answer.message === undefined && answer.problem?.startsWith("no answer within") === true)
    return { outcome: "unanswered", note: answer.problem };
  if (answer.result?.resultType === "input_required")
    return { outcome: "unanswered", note: "it asks its user something" };
  const note = failureOf(answer);
  return note === undefined ? { outcome: "succeeded" } : { outcome: "failed", note };
}

function taskOutcome({ method, answer: { result } }: ProbeExchange): Seen | undefined {
  if (result === undefined) return undefined;
  if (method === "tasks/get" && result.status === "failed")
    return { outcome: "failed", note: textOf(result.statusMessage) ?? "its task failed", isEnd: true };
  const own = method === "tasks/result" ? result : result.status === "completed" ? fieldsOf(result.result) : undefined;
  if (own === undefined) return undefined;
  const note = failureIn(own);
  return note === undefined ? { outcome: "succeeded", isEnd: true } : { outcome: "failed", note, isEnd: true };
}
