import { RequestError } from "../errors.ts";
import { fieldsOf, isObject, type Json, textOf } from "../wire/json.ts";
import { cut } from "../wire/peer-errors.ts";
import { legacyRevision } from "../wire/revisions.ts";
import type { TaskPage, TaskState, Tool } from "./client.ts";
import { answerMs } from "./connection/server-connection.ts";
import type { ClientFacts } from "./follow/find-task.ts";
import { followUpPrefix, resultTool } from "./follow/plain-handle.ts";
import { readTask } from "./follow/remote-task.ts";
import { firstTextOf } from "./tool-result.ts";

/** The caller's tasks, newest first: tasks/list of 2025-11-25, or the tool `task_list` where a server has that. */
export async function listTasks({ connection, tools }: ClientFacts, cursor: string | undefined): Promise<TaskPage> {
  const options = { isRepeatable: true, limitMs: answerMs };
  const page: Json = cursor === undefined ? {} : { cursor };
  const canList =
    connection.server.tasks === legacyRevision && fieldsOf(connection.dialect.capabilities.tasks).list !== undefined;
  if (canList) {
    const result = await connection.request("tasks/list", page, options);
    return toPage(listOf(result.tasks).map(readTask), result.nextCursor);
  }
  const listed = await tools.list();
  const prefix = followUpPrefix(listed);
  const name = `${prefix ?? ""}task_list`;
  if (!listed.some((tool) => tool.name === name || (tool.name === `${prefix}${resultTool}` && isAlone(tool))))
    throw new RequestError(
      "method",
      "This server does not list tasks; keep a task's id, and ask for the task by that.",
    );
  const result = await connection.request("tools/call", { name, arguments: page }, options);
  const { data } = fieldsOf(result.structuredContent);
  if (result.isError === true || !isObject(data)) {
    throw new RequestError("params", cut(firstTextOf(result) || "The server did not list its tasks."));
  }
  return toPage(listOf(data.jobs).map(fromJob), data.next_cursor);
}

/** True for `task_result` of a server that lists no other follow-up tool, and has them all the same. */
function isAlone({ inputSchema }: Tool): boolean {
  const { properties, required } = fieldsOf(inputSchema);
  return fieldsOf(properties).answer !== undefined && !listOfTexts(required).includes("job_id");
}

function listOfTexts(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

function toPage(tasks: readonly (TaskState | undefined)[], nextCursor: unknown): TaskPage {
  const cursor = textOf(nextCursor);
  return { tasks: tasks.filter((task) => task !== undefined), ...(cursor !== undefined && { nextCursor: cursor }) };
}

function fromJob({ job_id, status, message, created_at }: Json): TaskState | undefined {
  const shown = status === "queued" ? "working" : status;
  return readTask({
    taskId: job_id,
    status: shown,
    createdAt: created_at,
    ...(message !== "" && { statusMessage: message }),
  });
}

function listOf(value: unknown): Json[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}
