import { RequestError } from "../errors.ts";
import { legacyRevision, modernRevision } from "../wire/revisions.ts";
import type { Question } from "./client.ts";
import type { Connection } from "./connection.ts";
import { Road2025 } from "./follow-2025.ts";
import { Road2026 } from "./follow-2026.ts";
import { followUpPrefix, PlainRoad } from "./plain-handle.ts";
import type { Askers } from "./questions.ts";
import type { Road } from "./road.ts";
import type { ToolList } from "./tools.ts";

/** What every call and every handle of one client shares. */
export interface ClientFacts {
  readonly connection: Connection;
  readonly askers: Askers;
  readonly tools: ToolList;
}

/** The way to a task that is known by its id alone. */
export async function roadTo(facts: ClientFacts, taskId: string): Promise<Road> {
  const { connection } = facts;
  if (connection.server.tasks === modernRevision) return new Road2026(connection, taskId);
  if (connection.server.tasks === legacyRevision) return road2025(facts, taskId);
  const plain = await plainRoad(facts, taskId);
  if (plain === undefined)
    throw new RequestError(
      "method",
      "This server has no tasks, and no tools such as task_result to follow its work with.",
    );
  return plain;
}

export function road2025(facts: ClientFacts, taskId: string): Road {
  const { connection, askers } = facts;
  const findQuestions = async (): Promise<readonly Question[]> => {
    const snapshot = await (await plainRoad(facts, taskId))?.look({}).catch(() => undefined);
    return snapshot?.state.questions ?? [];
  };
  return new Road2025({ connection, askers, taskId, findQuestions });
}

async function plainRoad({ connection, tools }: ClientFacts, taskId: string): Promise<Road | undefined> {
  const prefix = followUpPrefix(await tools.list());
  return prefix === undefined ? undefined : new PlainRoad({ connection, jobId: taskId, prefix });
}
