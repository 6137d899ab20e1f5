import type { CatalogEntry } from "../command/catalog.ts";
import type { Answer, Door, ProgressReport, Question } from "../command/context.ts";
import type { Outcome } from "../command/outcome.ts";
import { type EarlierAttempts, withEarlier } from "../command/retries.ts";
import { ShuttingDown } from "../errors.ts";
import { failpoint } from "../failpoint.ts";
import { ClaimedTask, type ClaimedTaskOptions, earlierStep } from "./claimed-task.ts";
import type { RunIsolated } from "./isolated/isolation.ts";
import { KeptSteps, type OpenQuestion, Runner, type RunnerOptions } from "./runner.ts";
import type { Task, TaskRules } from "./task.ts";
import { notLoaded, notRun, withSentence } from "./task-outcome.ts";

export interface AttemptOptions extends ClaimedTaskOptions, RunnerOptions {
  /** Runs an attempt in a child process; absent where there can be none. */
  readonly runIsolated?: RunIsolated;
  /**
   * The same for a task whose worker died: under the bounds of this process, so that all that is new to it is to be
   * alone.
   */
  readonly runApart?: RunIsolated;
  /** Called when a run has nothing to do but to wait for an answer. */
  readonly onWaiting?: () => void;
}

/** A task that a worker has claimed, and when its run may begin, unless that is at once. */
interface Begun {
  readonly task: Task;
  readonly entry: CatalogEntry | undefined;
  readonly mayBegin: Promise<unknown> | undefined;
}

/** An open question that is lost with its process, because the run that asks must not be repeated. */
export interface QuestionAtRisk {
  readonly taskId: string;
  readonly tool: string;
  readonly message: string;
  /** The end of its time; absent where it has none. */
  readonly until?: number;
}

export function toAtRisk({ taskId, command }: Pick<Task, "taskId" | "command">, open: OpenQuestion): QuestionAtRisk {
  return { taskId, tool: command, ...open };
}

/** One run of a task that a worker has claimed. */
export class Attempt implements Door {
  readonly #options: AttemptOptions;
  readonly #record: ClaimedTask;
  readonly #runner: Runner;
  /** When the outcome is recorded too, and there is nothing left to do. */
  readonly ended: Promise<void>;
  readonly isTask = true;
  #isLeaving = false;

  constructor(options: AttemptOptions, { task, entry, mayBegin }: Begun) {
    this.#options = options;
    this.#record = new ClaimedTask(options, task, (reason) => this.stop(reason));
    this.#runner = new Runner(options, task);
    const outcome = this.#execute(entry, mayBegin).catch((error: unknown) =>
      withSentence(notRun(error), options.clock.now()),
    );
    this.ended = this.#conclude(outcome).catch((error: unknown) =>
      options.log.error("an attempt could not be recorded; its lease will run out", { error }),
    );
  }

  stop(reason: Error): void {
    this.#runner.stop(reason);
  }

  /** Its process is about to end. What is safe to run again is stopped and given back; the rest may go on. */
  leave(): void {
    this.#isLeaving = true;
    if (this.#record.isSafe) this.stop(new ShuttingDown());
  }

  /** True while it waits for a person. */
  get isWaiting(): boolean {
    return this.#runner.isWaiting;
  }

  /** What it asks, if its run may not be repeated: a process that ends takes the question along. */
  get questionsAtRisk(): readonly QuestionAtRisk[] {
    return this.#record.isSafe
      ? []
      : this.#runner.openQuestions.map((question) => toAtRisk(this.#record.task, question));
  }

  announce(text: string): void {
    this.#record.announce(text);
  }

  progress(report: ProgressReport): void {
    failpoint("mid-run");
    this.#record.progress(report);
  }

  finish(): void {
    this.#record.finishProgress();
  }

  ask(question: Question, signal: AbortSignal): Promise<Answer> {
    return this.#runner.waitFor(question, (onAsked) =>
      this.#record.ask(question, signal, (until) => {
        onAsked(until);
        this.#options.onWaiting?.();
      }),
    );
  }

  async #execute(entry: CatalogEntry | undefined, mayBegin: Promise<unknown> | undefined): Promise<Outcome> {
    if (mayBegin !== undefined) await mayBegin;
    const { taskId, command, attempts, crashes, fence } = this.#record.task;
    if (entry === undefined) return notLoaded(`The command ${command} is no longer there.`);
    // Under its first fence nothing can have been kept.
    const kept = new Map(fence === 1 ? [] : await this.#runner.insist(() => this.#options.store.steps(taskId)));
    // Steps go with the end of their task: whoever comes after it finds none, and would do again what was done.
    if (attempts + crashes > 1 && kept.size === 0) await this.#record.look();
    const steps = new KeptSteps((name, json, rules) => this.#keep(name, json, rules), kept);
    const earlier = steps.get(earlierStep);
    if (earlier !== undefined) this.#record.earlier = JSON.parse(earlier) as EarlierAttempts;
    const outcome = await this.#runner.run(entry, {
      door: this,
      steps,
      attempt: attempts + crashes,
      elsewhere: this.#elsewhere(entry),
    });
    return withEarlier(outcome, this.#record.earlier, entry.toolName);
  }

  async #keep(step: string, json: string, rules?: Pick<TaskRules, "isSafe">): Promise<void> {
    if (rules === undefined) return await this.#record.keepStep(step, json);
    await this.#record.leave({ step, json, isSafe: rules.isSafe });
    if (this.#isLeaving) this.leave();
  }

  /** How it is run in a child process; undefined where it runs in this one. */
  #elsewhere({ command, file }: CatalogEntry): RunIsolated | undefined {
    const { runIsolated, runApart } = this.#options;
    // Its server is here.
    if (command.foreign !== undefined) return undefined;
    if (command.isolation === "process") return runIsolated;
    // Of all that ran where a worker died any may have ended it. In a process of its own a crash names its culprit, and
    // hurts nobody else.
    return this.#record.task.crashes > 0 && file !== "" ? runApart : undefined;
  }

  async #conclude(ending: Promise<Outcome>): Promise<void> {
    const outcome = await ending;
    try {
      const isCounted = await this.#runner.insist(() => this.#record.conclude(outcome, this.#runner.stopReason));
      if (isCounted) this.#runner.remember(outcome);
    } finally {
      this.#record.close();
    }
  }
}
