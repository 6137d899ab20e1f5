import { anonymousKey } from "../command/caller.ts";
import { needsPerson } from "../command/foreign-question.ts";
import type { CallRequest } from "./call-request.ts";
import type { Engine } from "./engine.ts";
import { openQuestions, type Task } from "./task.ts";

/**
 * What only a person may answer, of those who cannot be told apart: it can be answered nowhere else than in the call
 * itself, so outside of it it is dismissed.
 */
export async function dismissUnanswerable(task: Task, request: CallRequest, engine: Engine): Promise<Task> {
  const { caller, whenAsked } = request;
  const open = openQuestions(task).filter(needsPerson);
  if (caller !== anonymousKey || open.length === 0 || whenAsked(open) === "park") return task;
  for (const { key } of open) await engine.answer(caller, task.taskId, { [key]: { action: "cancel" } });
  return await engine.get(caller, task.taskId);
}
