import { RequestError } from "../errors.ts";
import type { Ending } from "./call.ts";
import type { Answer, FollowOptions, TaskHandle, TaskState, ToolResult } from "./client.ts";
import { follow, Scope } from "./follow.ts";
import type { Road, Snapshot } from "./road.ts";
import { type ClientFacts, roadTo } from "./roads.ts";
import { checkLimits } from "./usage.ts";

/** Work by its handle, in whichever way this server lets it be followed. */

/** A task by its id alone. */
export function toHandle(facts: ClientFacts, taskId: string): TaskHandle {
  // Which tools a server has is found out when it matters.
  let road: Promise<Road> | undefined;
  return handleOf(taskId, () => (road ??= roadTo(facts, taskId)));
}

/** What a detached call came to. */
export function fromEnding(ending: Ending): TaskHandle {
  if ("road" in ending) return handleOf(ending.road.taskId, async () => ending.road, ending.first);
  const { result } = ending;
  const refuse = async () => {
    throw new RequestError(
      "params",
      "The server has answered without making a task of it: there is none, and `result` has the answer.",
    );
  };
  return { taskId: undefined, state: refuse, result: async () => result, cancel: refuse, answer: refuse };
}

function handleOf(taskId: string, find: () => Promise<Road>, first?: Snapshot): TaskHandle {
  return {
    taskId,
    async state(): Promise<TaskState> {
      return (await (await find()).look({})).state;
    },
    async result(options: FollowOptions = {}): Promise<ToolResult> {
      checkLimits(options, ["timeoutMs", "pollIntervalMs"]);
      const scope = new Scope(options);
      try {
        return await follow(await find(), { options, scope, ...(first !== undefined && { first }) });
      } finally {
        scope.close();
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
