import { type Caller, callerKey } from "../command/caller.ts";
import { RequestError } from "../errors.ts";
import type { Task, TaskQuestion } from "../task/task.ts";
import type { Json } from "../wire/json.ts";
import { canAnswer } from "./questions.ts";
import type { ClientRequest } from "./request.ts";
import { type TaskTelling, toDetailedTask } from "./task-wire.ts";

/** Of one listening. */
const maxTaskIds = 1_000;

/** Tells clients what becomes of the tasks they listen to, as the tasks extension has it: those that are theirs. */
export class TaskSubscriptions {
  readonly #options: TaskTelling;

  constructor(options: TaskTelling) {
    this.#options = options;
  }

  /** The ids that a listening names, each once. */
  readIds(taskIds: readonly unknown[]): string[] {
    return [...new Set(taskIds.slice(0, maxTaskIds))].filter((id) => typeof id === "string");
  }

  /** The ids that are honoured: others are passed over, whether they never were or belong to somebody else. */
  async honour(taskIds: readonly string[], caller: Caller): Promise<string[]> {
    const engine = await this.#options.openEngine();
    const found = await Promise.all(
      taskIds.map((id) =>
        engine.get(callerKey(caller), id).then(
          () => true,
          (error: unknown) => {
            if (error instanceof RequestError) return false;
            throw error;
          },
        ),
      ),
    );
    return taskIds.filter((_, at) => found[at]);
  }

  /** Tells each task as it is now, and again with every change, until the signal says that it is over. */
  follow(
    { caller, client }: ClientRequest,
    taskIds: readonly string[],
    tell: (news: Json) => void,
    signal: AbortSignal,
  ): void {
    const { openEngine, find, clock, isDebug } = this.#options;
    const onTask = (task: Task) => {
      const may = (question: TaskQuestion) => canAnswer(question, client.capabilities);
      const facts = { now: clock.now(), canAnswer: may, isDebug };
      const { resultType: _type, ...detailed } = toDetailedTask(task, find, facts) as Json;
      tell(detailed);
    };
    for (const taskId of taskIds) {
      void openEngine()
        .then((engine) => engine.wait(callerKey(caller), taskId, { signal, onTask }))
        .catch(() => undefined); // The client stopped listening, or the task was pruned.
    }
  }
}
