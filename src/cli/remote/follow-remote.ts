import type { FollowOptions, Progress, Question, TaskState } from "../../client/client.ts";
import { InputRequired } from "../../client/client-errors.ts";
import { Detach } from "../../client/detach.ts";
import { systemClock } from "../../clock.ts";
import { CommandError } from "../../errors.ts";
import type { ProgressUpdate } from "../../task/progress.ts";
import { followWork, type leftAlone, type WorkElsewhere, type WorkScreen } from "../follow-work.ts";
import { clean } from "../terminal.ts";
import { type AskedTask, TaskStory } from "./task-story.ts";

export interface RemoteOptions
  extends Pick<WorkElsewhere, "terminal" | "canDetach" | "wayBack" | "wayToAnswer" | "isWatching" | "deadline"> {
  readonly isQuiet: boolean;
  /** The work is to be left alone as soon as it is a task. */
  readonly isLeaving?: boolean;
  /** Tell the whole story of the task. */
  readonly story?: AskedTask | undefined;
  /** The task, where it is known already. */
  readonly task?: TaskState | undefined;
}

/** Follows work that a server does, by what its client hears of it. */
export async function followRemote<T>(
  options: RemoteOptions,
  work: (follow: FollowOptions) => Promise<T>,
): Promise<T | typeof leftAlone> {
  const { terminal, isQuiet, task } = options;
  const createdAt = task?.createdAt;
  let story: TaskStory | undefined;
  try {
    return await followWork(
      {
        ...options,
        taskId: task?.taskId,
        elapsedMs: createdAt === undefined ? 0 : Math.max(0, systemClock.now() - createdAt),
        // In a pipe the story's lines are enough.
        hasBar: !isQuiet && (options.story === undefined || terminal.isLive),
      },
      async (screen, signal) => {
        if (!isQuiet && options.story !== undefined) {
          story = new TaskStory({ say: (line) => screen.line(line), colors: terminal.colors, clock: systemClock });
          story.begin(options.story);
        }
        const result = await work({ signal, ...toListeners(screen, story, options) });
        screen.end();
        story?.finish();
        return result;
      },
    );
  } catch (error) {
    throw error instanceof InputRequired ? toSentence(error, options) : error;
  } finally {
    story?.stop();
  }
}

function toListeners(screen: WorkScreen, story: TaskStory | undefined, options: RemoteOptions): FollowOptions {
  const { dim } = options.terminal.colors;
  return {
    onProgress: (progress) => {
      screen.progress(toUpdate(progress));
      story?.progress(progress.message);
    },
    onTask: (task) => {
      const isNew = screen.taskId === undefined;
      screen.taskId = task.taskId;
      story?.task(task);
      if (story !== undefined || options.isLeaving === true) return;
      if (isNew && !options.isQuiet) screen.line(dim(`  Task ${clean(task.taskId)}`));
      const { status, statusMessage } = task;
      // A message with numbers behind it is progress, and shown as such.
      if (status === "working" && statusMessage !== undefined && !isProgress(statusMessage))
        screen.announce(statusMessage);
    },
    onPoll: () => story?.poll(),
    ...(options.terminal.canAsk && {
      onInput: async ({ message, schema, until }: Question) => {
        const asked = { message, schema, isConfirmation: false, ...(until !== undefined && { until }) };
        const answer = await screen.ask(asked);
        // Nothing is sent: the question stays open for whoever comes next.
        if (answer === undefined) throw new Detach();
        return answer;
      },
    }),
  };
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
