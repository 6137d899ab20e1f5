import type { Answer, Question } from "../command/context.ts";
import { Cancelled } from "../errors.ts";
import { waitForTask } from "./feed.ts";
import type { Claim, TaskStore } from "./store.ts";
import { isTerminal, type Task } from "./task.ts";

/**
 * The questions of one attempt. What an earlier attempt asked is not asked again: the n-th question with the same words
 * is the same question, and its answer, if there is one, is replayed.
 */
export class Inputs {
  readonly #store: TaskStore;
  readonly #claim: Claim;
  readonly #task: Task;
  readonly #now: () => number;
  readonly #limitMs: number;
  readonly #earlier: Task["questions"][number][];

  constructor(store: TaskStore, claim: Claim, task: Task, { now, limitMs }: { now: () => number; limitMs: number }) {
    this.#store = store;
    this.#claim = claim;
    this.#task = task;
    this.#now = now;
    this.#limitMs = limitMs;
    this.#earlier = [...task.questions];
  }

  async ask(question: Question, signal: AbortSignal, onAsked?: () => void): Promise<Answer> {
    const at = this.#earlier.findIndex((earlier) => earlier.message === question.message);
    const known = at === -1 ? undefined : this.#earlier.splice(at, 1)[0];
    if (known?.answer !== undefined) return known.answer;
    const asked =
      known ?? (await this.#store.ask(this.#claim, { ...question, until: this.#now() + this.#limitMs }, this.#now()));
    if (asked === undefined) throw new Cancelled("The task is no longer ours.");
    onAsked?.();
    const isAnswered = (task: Task) =>
      isTerminal(task) ||
      task.fence !== this.#claim.fence ||
      task.questions.some(({ key, answer }) => key === asked.key && answer !== undefined);
    const scope = () => ({ caller: this.#task.caller, now: this.#now() });
    const task = await waitForTask(this.#store, scope, this.#claim.taskId, { until: isAnswered, signal });
    const answer = task?.questions.find(({ key }) => key === asked.key)?.answer;
    if (answer === undefined) throw new Cancelled("The task is no longer ours.");
    return answer;
  }
}
