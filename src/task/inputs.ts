import { whose } from "../command/caller.ts";
import type { Answer, Question } from "../command/context.ts";
import { TakenBack } from "../command/foreign.ts";
import { isSameQuestion } from "../command/foreign-question.ts";
import { Cancelled, CommandError } from "../errors.ts";
import { waitForTask } from "./feed.ts";
import type { Claim, TaskStore } from "./store.ts";
import { isTerminal, type Task, type TaskQuestion } from "./task.ts";

interface QuestionLimits {
  /** How long a question waits for its answer. */
  readonly limitMs: number;
  /** How many tasks of a caller may wait for an answer. */
  readonly maxOpen: number;
}

/** The caller has as many open questions as there may be. */
class TooManyQuestions extends CommandError {
  constructor(open: number, caller: string) {
    super(
      `There are ${open} open questions of ${whose(caller)} already, the most there may be (setting \`limits.openQuestions\`), so this one was not asked; answer one of them, or cancel its task.`,
    );
  }
}

/**
 * The questions of one attempt. What an earlier attempt asked is not asked again: the n-th question with the same words,
 * or of somebody else's server the n-th that is the same to the letter, is the same question, and its answer, if there is one, is replayed.
 */
export class Inputs {
  readonly #store: TaskStore;
  readonly #claim: Claim;
  readonly #task: Task;
  readonly #limits: QuestionLimits;
  readonly #earlier: Task["questions"][number][];
  /** Questions of this attempt that are being written, or refused. */
  #beingAsked = 0;

  constructor(store: TaskStore, claim: Claim, task: Task, limits: QuestionLimits) {
    this.#store = store;
    this.#claim = claim;
    this.#task = task;
    this.#limits = limits;
    this.#earlier = [...task.questions];
  }

  async ask(question: Question, signal: AbortSignal, onAsked?: (until: number | undefined) => void): Promise<Answer> {
    const at = this.#earlier.findIndex((earlier) => isSameQuestion(earlier, question));
    const known = at === -1 ? undefined : this.#earlier.splice(at, 1)[0];
    if (known?.answer !== undefined) return known.answer;
    const asked = known ?? (await this.#ask(question));
    if (asked === undefined) throw new Cancelled("The task is no longer ours.");
    onAsked?.(asked.until);
    const isAnswered = (task: Task) =>
      isTerminal(task) ||
      task.fence !== this.#claim.fence ||
      task.questions.some(({ key, answer }) => key === asked.key && answer !== undefined);
    const scope = { caller: this.#task.caller };
    const { taskId } = this.#claim;
    const waiting = waitForTask(this.#store, scope, taskId, { until: isAnswered, signal });
    const task = await waiting.catch(async (error: unknown) => {
      // The work goes on without an answer, so nobody shall be asked for one.
      if (error instanceof TakenBack) await this.#store.answer(scope, taskId, asked.key, { action: "cancel" });
      throw error;
    });
    const answer = task?.questions.find(({ key }) => key === asked.key)?.answer;
    if (answer === undefined) throw new Cancelled("The task is no longer ours.");
    return answer;
  }

  /**
   * Counts before it writes: other tasks do not wait for that, and a question more or less does no harm. Those that are
   * asked side by side are written at once, so that they reach the client together.
   */
  async #ask(question: Question): Promise<TaskQuestion | undefined> {
    const { limitMs, maxOpen } = this.#limits;
    const { caller } = this.#task;
    const besideThis = this.#beingAsked;
    this.#beingAsked += 1;
    try {
      const open = besideThis + (await this.#store.countOpenQuestions({ caller }, maxOpen));
      if (open >= maxOpen) throw new TooManyQuestions(maxOpen, caller);
      return await this.#store.ask(this.#claim, { ...question, limitMs });
    } finally {
      this.#beingAsked -= 1;
    }
  }
}
