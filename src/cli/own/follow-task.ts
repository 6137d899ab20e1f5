import { isForPerson } from "../../command/foreign-question.ts";
import { Cancelled, Exit, type ExitCode } from "../../errors.ts";
import { thisProgram } from "../../program/program.ts";
import type { Engine } from "../../task/engine.ts";
import { type EndedTask, isTerminal, openQuestions, type Task, type TaskQuestion } from "../../task/task.ts";
import { outcomeOf } from "../../task/task-outcome.ts";
import { followWork, leftAlone, type WorkScreen } from "../follow-work.ts";
import { printCompleted, printFailure } from "../run-in-terminal.ts";
import type { OutputFormat } from "../screens/output.ts";
import type { OutFile } from "../screens/result-files.ts";
import { shownId } from "../screens/task-id.ts";
import { clean, type Terminal } from "../terminal.ts";

export interface FollowedTask {
  readonly engine: Engine;
  readonly terminal: Terminal;
  readonly isQuiet: boolean;
  readonly format: OutputFormat;
  /** The file for images and files of the result. */
  readonly out?: OutFile | undefined;
  /** Confirmations are given without asking. */
  readonly isConfirmed: boolean;
  /** The task was started elsewhere: Ctrl-C stops the watching, not the task. */
  readonly isWatching?: boolean;
  /** Called with each new state of the task. */
  readonly onTask?: (task: Task) => void;
}

/** Follows a task to its end, showing progress and asking its questions; prints the result. */
export async function followTask(task: Task, options: FollowedTask): Promise<ExitCode> {
  const { terminal, isQuiet, isWatching } = options;
  const ended = await followWork(
    {
      terminal,
      hasBar: !isQuiet,
      estimateSeconds: task.isProven && task.estimateMs !== undefined ? task.estimateMs / 1000 : undefined,
      taskId: task.taskId,
      canDetach: true,
      wayBack: (taskId) => `${thisProgram.name} tasks watch ${shownId(taskId, terminal.isLive)}`,
      wayToAnswer: (taskId) => `${thisProgram.name} tasks answer ${shownId(taskId, terminal.isLive)}`,
      isWatching,
    },
    (screen, signal) => waitForEnd(task, options, { screen, signal }),
  );
  return ended === leftAlone ? Exit.Ok : await printResult(ended, options);
}

const nothingYet = { total: undefined, message: undefined, percentage: undefined, context: undefined };

async function waitForEnd(
  { caller, taskId }: Task,
  options: FollowedTask,
  { screen, signal }: { readonly screen: WorkScreen; readonly signal: AbortSignal },
): Promise<EndedTask> {
  const { engine } = options;
  const asked = new Set<string>();
  const onTask = (current: Task) => {
    options.onTask?.(current);
    if (!isTerminal(current) && current.statusMessage !== undefined) screen.announce(current.statusMessage);
    if (current.progress !== undefined) screen.progress({ ...nothingYet, ...current.progress });
    for (const question of isTerminal(current) ? [] : openQuestions(current).filter(isForPerson)) {
      if (asked.has(question.key)) continue;
      asked.add(question.key);
      void answerQuestion(current, question, options, screen);
    }
  };
  try {
    return (await engine.wait(caller, taskId, { signal, onTask })) as EndedTask;
  } catch (error) {
    if (!(signal.reason instanceof Cancelled)) throw error;
    await engine.cancel(caller, taskId);
    return (await engine.wait(caller, taskId)) as EndedTask;
  }
}

async function answerQuestion(
  { caller, taskId }: Task,
  question: TaskQuestion,
  { engine, terminal, isConfirmed }: FollowedTask,
  screen: WorkScreen,
): Promise<void> {
  const isGiven = question.isConfirmation && isConfirmed;
  if (!isGiven && !terminal.canAsk) {
    const answerWords = `${thisProgram.name} tasks answer ${shownId(taskId, terminal.isLive)}`;
    terminal.say(`  It asks «${clean(question.message)}»: ${answerWords}\n`);
    return;
  }
  const answer = isGiven ? ({ action: "accept", content: { confirm: true } } as const) : await screen.ask(question);
  if (answer !== undefined) await engine.answer(caller, taskId, { [question.key]: answer });
}

/** Prints the outcome of a task as the command itself would print it. Returns the exit code. */
export async function printResult(
  task: EndedTask,
  options: Pick<FollowedTask, "terminal" | "isQuiet" | "format" | "out">,
): Promise<ExitCode> {
  const { terminal, isQuiet, format, out } = options;
  const outcome = outcomeOf(task);
  if (outcome.ending === "completed")
    return await printCompleted(outcome, { terminal, name: task.command, isQuiet, format, out });
  const code =
    outcome.ending === "cancelled" ? Exit.Cancelled : outcome.cause === "timeout" ? Exit.TimedOut : Exit.CommandFailed;
  await printFailure(outcome, { terminal, format, code });
  return code;
}
