import { RequestError } from "../errors.ts";
import { checkLimits } from "./check-options.ts";
import type { Answer, FollowOptions, TaskHandle, TaskState, ToolResult } from "./client.ts";
import { type ClientFacts, findTask } from "./follow/find-task.ts";
import { FollowLimits, follow } from "./follow/follow-to-end.ts";
import type { RemoteTask, Snapshot } from "./follow/remote-task.ts";
import type { Ending } from "./tool-call.ts";

/** Work by its handle, in whichever way this server lets it be followed. */

/** A task by its id alone. */
export function toHandle(facts: ClientFacts, taskId: string): TaskHandle {
  // Which tools a server has is found out when it matters.
  let task: Promise<RemoteTask> | undefined;
  return handleOf(taskId, () => (task ??= findTask(facts, taskId)));
}

/** What a detached call came to. */
export function fromEnding(ending: Ending): TaskHandle {
  if ("task" in ending) return handleOf(ending.task.taskId, async () => ending.task, ending.first);
  const { result } = ending;
  const refuse = async () => {
    throw new RequestError(
      "params",
      "The server has answered without making a task of it: there is none, and `result` has the answer.",
    );
  };
  return { taskId: undefined, state: refuse, result: async () => result, cancel: refuse, answer: refuse };
}

function handleOf(taskId: string, find: () => Promise<RemoteTask>, first?: Snapshot): TaskHandle {
  return {
    taskId,
    async state(): Promise<TaskState> {
      return (await (await find()).look({})).state;
    },
    async result(options: FollowOptions = {}): Promise<ToolResult> {
      checkLimits(options, ["timeoutMs", "pollIntervalMs"]);
      const limits = new FollowLimits(options);
      try {
        return await follow(await find(), { options, limits, ...(first !== undefined && { first }) });
      } finally {
        limits.close();
      }
    },
    async cancel(): Promise<void> {
      await (await find()).cancel();
    },
    async answer(answers: Readonly<Record<string, Answer>>): Promise<void> {
      await (await find()).answer(answers);
    },
  };
}
