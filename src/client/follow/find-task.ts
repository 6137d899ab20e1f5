import { RequestError } from "../../errors.ts";
import { legacyRevision, modernRevision } from "../../wire/revisions.ts";
import type { Question } from "../client.ts";
import type { ServerConnection } from "../connection/server-connection.ts";
import type { ToolList } from "../tool-list.ts";
import type { Askers } from "./asked-questions.ts";
import { followUpPrefix } from "./plain-handle.ts";
import { PlainJob } from "./plain-job.ts";
import type { RemoteTask } from "./remote-task.ts";
import { Task2025 } from "./task-2025.ts";
import { Task2026 } from "./task-2026.ts";

/** What every call and every handle of one client shares. */
export interface ClientFacts {
  readonly connection: ServerConnection;
  readonly askers: Askers;
  readonly tools: ToolList;
}

/** The way to a task that is known by its id alone. */
export async function findTask(facts: ClientFacts, taskId: string): Promise<RemoteTask> {
  const { connection } = facts;
  if (connection.server.tasks === modernRevision) return new Task2026(connection, taskId);
  if (connection.server.tasks === legacyRevision) return task2025(facts, taskId);
  const plain = await findPlainJob(facts, taskId);
  if (plain === undefined)
    throw new RequestError(
      "method",
      "This server has no tasks, and no tools such as task_result to follow its work with.",
    );
  return plain;
}

export function task2025(facts: ClientFacts, taskId: string): RemoteTask {
  const { connection, askers } = facts;
  const findQuestions = async (): Promise<readonly Question[]> => {
    const snapshot = await (await findPlainJob(facts, taskId))?.look({}).catch(() => undefined);
    return snapshot?.state.questions ?? [];
  };
  return new Task2025({ connection, askers, taskId, findQuestions });
}

async function findPlainJob({ connection, tools }: ClientFacts, taskId: string): Promise<RemoteTask | undefined> {
  const prefix = followUpPrefix(await tools.list());
  return prefix === undefined ? undefined : new PlainJob({ connection, jobId: taskId, prefix });
}
