import type { Clock } from "../clock.ts";
import { RequestError } from "../errors.ts";
import type { Logger } from "../log.ts";
import type { Engine } from "../task/engine.ts";
import { isTerminal, openQuestions, type Task } from "../task/task.ts";
import { stateLivesMs } from "./request-states.ts";

/** One for all: an error made anew, with its stack, is most of what ending a wait costs. */
const unparked = new Error("The call is not parked any more.");

/**
 * Calls that were sent back with a question. One that nobody comes back to must not wait for ever: its state is void
 * after an hour. One that has ended meanwhile is forgotten at once.
 */
export class ParkedCalls {
  readonly #clock: Clock;
  readonly #log: Logger;
  /** By task, what keeps its clock from running out. */
  readonly #parked = new Map<string, () => void>();

  constructor({ clock, log }: { readonly clock: Clock; readonly log: Logger }) {
    this.#clock = clock;
    this.#log = log;
  }

  get size(): number {
    return this.#parked.size;
  }

  park(engine: Engine, caller: string, taskId: string): void {
    const over = new AbortController();
    const cancel = () => {
      unpark();
      cancelLostTask({ engine, caller, taskId, log: this.#log }, "Nobody answered its question within an hour.");
    };
    const cancelTimer = this.#clock.after(stateLivesMs, cancel);
    const unpark = () => {
      cancelTimer();
      over.abort(unparked);
      if (this.#parked.get(taskId) === unpark) this.#parked.delete(taskId);
    };
    this.unpark(taskId);
    this.#parked.set(taskId, unpark);
    // Its client may come back to another server, which takes the answers then.
    engine.wait(caller, taskId, { until: isAnswered, signal: over.signal }).then(unpark, (error: unknown) => {
      // Pruned is as good as ended; where the store failed, the hour goes on.
      if (error instanceof RequestError) unpark();
    });
  }

  unpark(taskId: string): void {
    this.#parked.get(taskId)?.();
  }
}

/** Nothing is asked any more, be it that it has ended. */
function isAnswered(task: Task): boolean {
  return isTerminal(task) || openQuestions(task).length === 0;
}

interface LostTask {
  readonly engine: Engine;
  readonly caller: string;
  readonly taskId: string;
  readonly log: Logger;
}

/** Cancels a task that its client cannot find any more; must not throw. */
export function cancelLostTask({ engine, caller, taskId, log }: LostTask, why: string): void {
  engine.cancel(caller, taskId, why).catch((error: unknown) => {
    // Gone is as good as cancelled.
    if (!(error instanceof RequestError)) log.warn("a task that nobody can find could not be cancelled", { error });
  });
}
