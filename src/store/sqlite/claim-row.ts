import type { ClaimRequest } from "../../task/store.ts";
import type { Task } from "../../task/task.ts";
import { fromEnvironment, fromShares, fromTexts } from "./rows.ts";
import type { TaskFile } from "./task-file.ts";

/** Claims the task whose turn it is, or the one that is named; undefined when there is none. */
export async function claimRow(file: TaskFile, request: ClaimRequest, now: number): Promise<Task | undefined> {
  const { project, worker, leaseMs, taskId, except = [], shares } = request;
  const environment = fromEnvironment(request.environment);
  const facts = { project, worker, leaseMs, now, environment, except: fromTexts(except) };
  if (taskId !== undefined) return await file.quickly(() => file.task("claimNamed", { ...facts, taskId }));
  // A look takes no lock, and mostly there is nothing.
  if ((await file.read(() => file.first("hasWork", { project, now }))) === undefined) return undefined;
  return await file.quickly(() => file.task("claim", { ...facts, ...fromShares(shares) }));
}
