import { localKey } from "../../command/caller.ts";
import type { Answer } from "../../command/context.ts";
import { Exit, type ExitCode } from "../../errors.ts";
import type { Engine } from "../../task/engine.ts";
import { type EndedTask, isTerminal, openQuestions, type Task, type TaskQuestion } from "../../task/task.ts";
import { printCompleted, sayFailure } from "../run-in-terminal.ts";
import type { Format } from "../screens/output.ts";
import { askInTerminal, clean, StageView, type Terminal } from "../terminal.ts";

export interface FollowOptions {
  readonly engine: Engine;
  readonly terminal: Terminal;
  readonly isQuiet: boolean;
  readonly format: Format;
  /** Confirmations are given without asking. */
  readonly isConfirmed: boolean;
  /** The task is somebody else's doing: Ctrl-C leaves, and neither stops it nor says no to what it asks. */
  readonly isWatching?: boolean;
  /** Sees every change. */
  readonly onTask?: (task: Task) => void;
}

/** Follows a task to its end, showing progress and asking its questions; prints the result. */
export async function followTask(task: Task, options: FollowOptions): Promise<ExitCode> {
  const { engine, terminal } = options;
  const leave = new AbortController();
  const asked = new Set<string>();
  let choosing = false;
  const view = options.isQuiet
    ? undefined
    : new StageView(terminal, {
        estimateSeconds: task.isProven && task.estimateMs !== undefined ? task.estimateMs / 1000 : undefined,
      });
  const stopListening = terminal.onInterrupt((how) => {
    // The work is done elsewhere: a terminal that is closed leaves it alone.
    if (how === "leave" || options.isWatching === true) return leave.abort(new Detached());
    if (choosing) return terminal.leave(Exit.Cancelled);
    choosing = true;
    void chooseHowToLeave(task, options, view).then((choice) => {
      choosing = false;
      if (choice === "detach") leave.abort(new Detached());
    });
  });
  let announced: string | undefined;
  const onTask = (current: Task) => {
    options.onTask?.(current);
    if (!isTerminal(current) && current.statusMessage !== undefined && current.statusMessage !== announced) {
      announced = current.statusMessage;
      view?.announce(announced);
    }
    if (current.progress !== undefined)
      view?.progress({
        total: undefined,
        message: undefined,
        percentage: undefined,
        context: undefined,
        ...current.progress,
      });
    if (isTerminal(current)) return;
    for (const question of openQuestions(current)) {
      if (asked.has(question.key)) continue;
      asked.add(question.key);
      void answerQuestion(current.taskId, question, options, view).then(
        (isLeft) => isLeft && leave.abort(new Detached()),
      );
    }
  };
  try {
    const ended = await engine.wait(localKey, task.taskId, { signal: leave.signal, onTask });
    view?.end();
    return await printResult(ended as EndedTask, options);
  } catch (error) {
    if (!(error instanceof Detached)) throw error;
    view?.end();
    terminal.say(`  It goes on without you: meanwhile tasks watch ${task.taskId}\n`);
    return Exit.Ok;
  } finally {
    view?.end();
    stopListening();
  }
}

class Detached extends Error {}

async function chooseHowToLeave(
  task: Task,
  { engine, terminal }: FollowOptions,
  view: StageView | undefined,
): Promise<HowToLeave> {
  const choice = await askHowToLeave(terminal, view);
  if (choice === "cancel") await engine.cancel(localKey, task.taskId);
  return choice;
}

type HowToLeave = "cancel" | "detach" | "stay";

/** On a terminal Ctrl-C asks what is meant; elsewhere it cancels. */
export async function askHowToLeave(
  terminal: Terminal,
  view: StageView | undefined,
  canDetach = true,
): Promise<HowToLeave> {
  if (!terminal.canAsk) return "cancel";
  const leave = { enum: ["cancel the task", ...(canDetach ? ["let it go on"] : []), "stay"] };
  const question = {
    message: "Leave how?",
    isConfirmation: false,
    schema: { type: "object", properties: { leave }, required: ["leave"] },
  };
  let isMeant = false;
  const ask = () => askInTerminal(question, () => (isMeant = true));
  const answer = await (view === undefined ? ask() : view.pause(ask));
  // A second Ctrl-C is meant. Esc is not: over a slow line an arrow key may come in two, and an Esc is its first half.
  if (answer.action !== "accept") return isMeant ? "cancel" : "stay";
  return answer.content.leave === "let it go on" ? "detach" : answer.content.leave === "stay" ? "stay" : "cancel";
}

/** True where nobody wanted to answer and nobody has to. */
async function answerQuestion(
  taskId: string,
  question: TaskQuestion,
  options: FollowOptions,
  view: StageView | undefined,
): Promise<boolean> {
  const { terminal, engine } = options;
  const answer = await giveAnswer(question, options, view);
  if (answer?.action === "cancel" && options.isWatching === true) return true;
  if (answer !== undefined) await engine.answer(localKey, taskId, { [question.key]: answer });
  else terminal.say(`  It asks «${clean(question.message)}»: meanwhile tasks answer ${taskId}\n`);
  return false;
}

async function giveAnswer(
  question: TaskQuestion,
  { terminal, isConfirmed }: FollowOptions,
  view: StageView | undefined,
): Promise<Answer | undefined> {
  if (question.isConfirmation && isConfirmed) return { action: "accept", content: { confirm: true } };
  if (!terminal.canAsk) return undefined;
  return await (view === undefined ? askInTerminal(question) : view.pause(() => askInTerminal(question)));
}

/** Prints how a task ended, the way the command itself would have. */
export async function printResult(
  task: EndedTask,
  options: Pick<FollowOptions, "terminal" | "isQuiet" | "format">,
): Promise<ExitCode> {
  const { terminal, isQuiet, format } = options;
  const { outcome } = task;
  if (outcome.ending === "completed")
    return await printCompleted(outcome, { terminal, name: task.command, isQuiet, format });
  sayFailure(outcome, terminal);
  if (outcome.ending === "cancelled") return Exit.Cancelled;
  return outcome.cause === "timeout" ? Exit.TimedOut : Exit.CommandFailed;
}
