import type { FollowOptions, Progress, Question, TaskState } from "../../client/client.ts";
import { InputRequired } from "../../client/client-errors.ts";
import { Detach } from "../../client/detach.ts";
import { systemClock } from "../../clock.ts";
import { Cancelled, CommandError, Exit, messageOf } from "../../errors.ts";
import type { ProgressUpdate } from "../../task/progress.ts";
import { HeldLines } from "../screens/held-lines.ts";
import { askHowToLeave } from "../own/follow-task.ts";
import { askInTerminal, clean, StageView, type Terminal } from "../terminal.ts";
import { TaskStory, type Wish } from "./task-story.ts";

export interface RemoteOptions {
  readonly terminal: Terminal;
  readonly isQuiet: boolean;
  /** A task outlives us here: its server does. */
  readonly canDetach: boolean;
  /** The words that bring a person back to a task that was left alone. */
  readonly wayBack: (taskId: string) => string;
  /** The words that answer a task's question. */
  readonly wayToAnswer: (taskId: string, fields: readonly string[]) => string;
  /** The work is to be left alone as soon as it is a task. */
  readonly isLeaving?: boolean;
  /** The task is only looked at: Ctrl-C leaves, and neither stops it nor says no to what it asks. */
  readonly isWatching?: boolean;
  /** Ends the waiting, and the work. */
  readonly deadline?: AbortSignal;
  /** Tell the whole story of the task. */
  readonly story?: Wish | undefined;
  /** The task, where it is known already. */
  readonly task?: TaskState | undefined;
}

/** Nothing came of it here, but the work goes on. */
export const leftAlone = Symbol("left alone");

/** Waits for work that a server does: shows how far it is, asks its questions, and asks on Ctrl-C what is meant. */
export async function followRemote<T>(
  options: RemoteOptions,
  work: (follow: FollowOptions) => Promise<T>,
): Promise<T | typeof leftAlone> {
  const { terminal } = options;
  const stop = new AbortController();
  const watcher = new Watcher(options, () => stop.abort(new Detach()));
  let isChoosing = false;
  const choose = async () => {
    isChoosing = true;
    const choice = await watcher.lines.holdDuring(() => askHowToLeave(terminal, watcher.view, options.canDetach));
    isChoosing = false;
    if (choice !== "stay") stop.abort(choice === "detach" ? new Detach() : new Cancelled("Cancelled."));
  };
  const stopListening = terminal.onInterrupt((how) => {
    if (isChoosing || stop.signal.aborted) return terminal.leave(Exit.Cancelled);
    const { taskId } = watcher;
    if (options.isWatching === true) return stop.abort(new Detach());
    // A terminal that is closed leaves a task alone where that means something.
    if (how === "leave" && taskId !== undefined && options.canDetach) return stop.abort(new Detach());
    if (how === "leave" || taskId === undefined) return stop.abort(new Cancelled("Cancelled."));
    void choose();
  });
  try {
    const { deadline } = options;
    const result = await work(
      watcher.toOptions(deadline === undefined ? stop.signal : AbortSignal.any([stop.signal, deadline])),
    );
    watcher.finish();
    return result;
  } catch (error) {
    watcher.end();
    if (stop.signal.reason instanceof Detach) {
      terminal.say(`  It goes on without you: ${options.wayBack(watcher.taskId ?? "")}\n`);
      return leftAlone;
    }
    // Whatever the server made of it, it was ended on purpose.
    if (stop.signal.aborted) throw stop.signal.reason;
    // A server that shares our terminal may have obeyed the same Ctrl-C.
    if (isChoosing) throw new Cancelled(`Cancelled: ${clean(messageOf(error))}`);
    throw error instanceof InputRequired ? toSentence(error, options) : error;
  } finally {
    watcher.end();
    stopListening();
  }
}

/** A question came, and there is no terminal to ask it in. */
function toSentence({ question, taskId }: InputRequired, { wayToAnswer, canDetach }: RemoteOptions): CommandError {
  const fields = Object.keys((question.schema.properties ?? {}) as Record<string, unknown>);
  const how =
    taskId === undefined || !canDetach
      ? "call it from a terminal to answer."
      : `it waits for ${wayToAnswer(taskId, fields)}`;
  return new CommandError(`It asks «${clean(question.message)}», and there is no terminal to answer in: ${how}`);
}

/** What a person sees of the work: a bar, or the story of the task, or both. */
class Watcher {
  readonly #terminal: Terminal;
  readonly #isLeaving: boolean;
  readonly #isWatching: boolean;
  readonly #leave: () => void;
  readonly #story: TaskStory | undefined;
  readonly view: StageView | undefined;
  /** Above the bar. */
  readonly lines: HeldLines;
  #announced: string | undefined;
  taskId: string | undefined;

  constructor(
    { terminal, isQuiet, isLeaving = false, isWatching = false, story, task }: RemoteOptions,
    leave: () => void,
  ) {
    this.#terminal = terminal;
    this.#isLeaving = isLeaving;
    this.#isWatching = isWatching;
    this.#leave = leave;
    this.taskId = task?.taskId;
    const elapsedMs = task?.createdAt === undefined ? 0 : Math.max(0, systemClock.now() - task.createdAt);
    // In a pipe the story's lines are enough.
    const hasView = !isQuiet && (story === undefined || terminal.isLive);
    this.view = hasView ? new StageView(terminal, { elapsedMs }) : undefined;
    this.lines = new HeldLines((line) => (this.view === undefined ? terminal.say(`${line}\n`) : this.view.line(line)));
    if (isQuiet || story === undefined) return;
    this.#story = new TaskStory({ say: (line) => this.lines.line(line), colors: terminal.colors, clock: systemClock });
    this.#story.begin(story);
  }

  toOptions(signal: AbortSignal): FollowOptions {
    return {
      signal,
      onProgress: (progress) => {
        this.view?.progress(toUpdate(progress));
        this.#story?.progress(progress.message);
      },
      onTask: (task) => this.#onTask(task),
      onPoll: () => this.#story?.poll(),
      ...(this.#terminal.canAsk && { onInput: (question: Question) => this.#answer(question) }),
    };
  }

  finish(): void {
    this.lines.release();
    this.view?.end();
    this.#story?.finish();
  }

  /** Nothing is shown after this. */
  end(): void {
    this.lines.release();
    this.view?.end();
    this.#story?.stop();
  }

  #onTask(task: TaskState): void {
    const isNew = this.taskId === undefined;
    this.taskId = task.taskId;
    this.#story?.task(task);
    if (this.#story === undefined && !this.#isLeaving) this.#show(task, isNew);
  }

  #show(task: TaskState, isNew: boolean): void {
    const { cyan, dim } = this.#terminal.colors;
    if (isNew && this.view !== undefined) this.lines.line(dim(`  Task ${clean(task.taskId)}`));
    const { status, statusMessage } = task;
    // A message with numbers behind it is progress, and shown as such.
    const isAnnouncement =
      status === "working" &&
      statusMessage !== undefined &&
      !isProgress(statusMessage) &&
      statusMessage !== this.#announced;
    if (!isAnnouncement) return;
    this.#announced = statusMessage;
    if (this.view !== undefined) this.lines.line(`${cyan("›")} ${clean(statusMessage)}`);
  }

  async #answer({ message, schema }: Question) {
    const ask = () => askInTerminal({ message, schema, isConfirmation: false });
    const answer = await this.lines.holdDuring(() => (this.view === undefined ? ask() : this.view.pause(ask)));
    if (answer.action !== "cancel" || !this.#isWatching) return answer;
    // Nothing is sent: the question stays open for whoever comes next.
    this.#leave();
    throw new Detach();
  }
}

const numbers = / \((?:\d+%(?:, )?)?(?:about [^()]+ left)?\)$/;

function isProgress(statusMessage: string): boolean {
  return numbers.test(statusMessage) || /^\d+%/.test(statusMessage);
}

/** Percentage and time are drawn beside the message, so it goes without them. */
function toUpdate({ done, total, message }: Progress): ProgressUpdate {
  const isKnown = total !== undefined && total > 0 && Number.isFinite(done / total);
  const percentage = isKnown ? Math.min(100, Math.max(0, (done / total) * 100)) : undefined;
  return { value: done, total, message: message?.replace(numbers, ""), percentage, context: undefined };
}
