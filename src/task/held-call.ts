import type { Answer, Door, LogLine, ProgressReport, Question } from "../command/context.ts";
import type { JsonObject } from "../command/foreign.ts";
import type { Outcome } from "../command/outcome.ts";
import { Cancelled, CommandError, isStoreError, ShuttingDown } from "../errors.ts";
import { failpoint } from "../failpoint.ts";
import { createId } from "../ids.ts";
import { type AttemptOptions, type QuestionAtRisk, toAtRisk } from "./attempt.ts";
import type { CallRequest, Timing } from "./call-request.ts";
import { ClaimedTask, type HandOutTerms, type LeftBehind } from "./claimed-task.ts";
import { digestOf } from "./digest.ts";
import { checkTtl, keptOf } from "./limits.ts";
import type { Outlook } from "./outlook.ts";
import type { Paced } from "./paced.ts";
import { ProgressTrack } from "./progress.ts";
import { isRepeatable, rulesOf } from "./retry.ts";
import { forCommands, KeptSteps, Runner } from "./runner.ts";
import type { EnvironmentMarks, NewTask, Task, TaskRules } from "./task.ts";

export interface HeldCallOptions extends AttemptOptions {
  /** Names this process, so that others can tell whether it lives. */
  readonly worker: string;
  readonly leaseMs: number;
  readonly project: string;
  readonly environment?: () => EnvironmentMarks;
  /** See `EngineOptions`. */
  readonly taskTtlMs?: number | undefined;
  /**
   * Calls that are to be put on record or made tasks: many begin at once, and many are lost with their client at once.
   */
  readonly records: Paced;
}

/** What a call is run under. */
export interface CallTerms {
  readonly outlook: Outlook;
  /** False where this question would find nobody. */
  readonly canAsk: (question: Question) => boolean;
}

type HeldEvent = "asked" | "long";

/** A call that runs longer than this is put on record. */
const journalAfterMs = 50;

/**
 * One run of a command for somebody who waits for it.
 *
 * It has no record at first; after a moment one is written, already claimed, and when the call is handed out that
 * record is an ordinary task, the run still the same. A call that is answered leaves nothing behind. Most end within a
 * turn of the event loop: whatever those do not need is made when it is needed.
 */
export class HeldCall implements Door {
  readonly #options: HeldCallOptions;
  readonly #request: CallRequest;
  readonly #outlook: Outlook;
  readonly #runner: Runner;
  readonly #startedAt: number;
  #record: ClaimedTask | undefined;
  #journal: Promise<void> | undefined;
  #cancelJournal: (() => void) | undefined;
  #answered: PromiseWithResolvers<void> | undefined;
  #ended: Promise<void> | undefined;
  #live: ProgressTrack | undefined;
  #lastReport: ProgressReport | undefined;
  #announced: string | undefined;
  readonly #early: HeldEvent[] = [];
  #onEvent: ((event: HeldEvent) => void) | undefined;
  #isReleased = false;
  #isHandedOut = false;
  #isLeaving = false;
  #left: LeftBehind | undefined;
  readonly #canAsk: CallTerms["canAsk"];
  /** How the run ended, as soon as it has. Never rejects. */
  readonly outcome: Outcome | Promise<Outcome>;

  constructor(options: HeldCallOptions, request: CallRequest, { outlook, canAsk }: CallTerms) {
    this.#options = options;
    this.#request = request;
    this.#outlook = outlook;
    this.#startedAt = options.clock.monotonic();
    this.#canAsk = canAsk;
    this.#runner = new Runner(options, request);
    const { entry } = request;
    const steps = new KeptSteps((name, json, rules) => this.#keepStep(name, json, rules));
    const elsewhere = entry.command.isolation === "process" ? options.runIsolated : undefined;
    const outcome = this.#runner.runWithRetries(entry, { door: this, steps, elsewhere }, (text) => this.#onRetry(text));
    const finish = (ending: Outcome) => {
      if (this.#mayRetry) this.#finishProgress();
      return ending;
    };
    this.outcome = outcome instanceof Promise ? (this.#mayRetry ? outcome.then(finish) : outcome) : finish(outcome);
  }

  /** How far it is in time; the client's view of it is made from both. */
  get timing(): Timing {
    const { estimateMs, isProven } = this.#outlook;
    return {
      elapsedMs: this.#options.clock.monotonic() - this.#startedAt,
      estimateMs: isProven ? estimateMs : undefined,
    };
  }

  /** When the outcome is recorded too, and there is nothing left to do. Only once it is held. */
  get ended(): Promise<void> {
    return this.#ended ?? Promise.resolve();
  }

  /**
   * From here on the call may take long: it is put on record after a moment. `onEvent` hears of every question that is
   * on record, and that its server takes long.
   */
  hold(onEvent: (event: HeldEvent) => void): void {
    const { clock } = this.#options;
    this.#onEvent = onEvent;
    for (const event of this.#early) onEvent(event);
    this.#answered ??= Promise.withResolvers<void>();
    const elapsedMs = clock.monotonic() - this.#startedAt;
    if (this.#record === undefined)
      this.#cancelJournal = clock.after(Math.max(0, journalAfterMs - elapsedMs), () => this.#journalInTurn());
    this.#ended = this.#conclude().catch((error: unknown) =>
      this.#options.log.error("an attempt could not be recorded; its lease will run out", { error }),
    );
  }

  /** True when nothing of the call was ever written down. */
  get isUnrecorded(): boolean {
    return this.#journal === undefined;
  }

  /** It ended before it was held: only how long it took is remembered. */
  remember(outcome: Outcome): void {
    this.#runner.remember(outcome);
  }

  /** The record, once there is one. */
  get taskId(): string | undefined {
    return this.#record?.task.taskId;
  }

  /** False as long as somebody waits for it. */
  get isTask(): boolean {
    return this.#isHandedOut;
  }

  stop(reason: Error): void {
    this.#runner.stop(reason);
  }

  /**
   * Its process is about to end. What is safe to run again is stopped as soon as it is handed out; the rest may go on.
   */
  leave(): void {
    this.#isLeaving = true;
    if (this.#isHandedOut && this.#record?.isSafe === true) this.stop(new ShuttingDown());
  }

  /** True while it waits for a person. */
  get isWaiting(): boolean {
    return this.#runner.isWaiting;
  }

  /** See `Attempt`. A call becomes a task when its process ends. */
  get questionsAtRisk(): readonly QuestionAtRisk[] {
    const record = this.#record;
    const isSafe = this.#isHandedOut ? record?.isSafe === true : this.mayBeRepeated;
    if (record === undefined || isSafe) return [];
    return this.#runner.openQuestions.map((question) => toAtRisk(record.task, question));
  }

  /** Its client may call again. What it has left behind is for another attempt alone, and a call has none. */
  get mayBeRepeated(): boolean {
    const { command } = this.#request.entry;
    return this.#left === undefined ? rulesOf(command).isSafe : this.#left.isSafe && isRepeatable(command);
  }

  /** Makes a task of a call that is still running, or has just ended; undefined when it cannot be one any more. */
  async handOut(terms: HandOutTerms): Promise<Task | undefined> {
    await new Promise<void>((resolve) => this.#options.records.add(resolve));
    const record = await this.#onRecord();
    if (!(await record.handOut(terms))) return undefined;
    this.#isHandedOut = true;
    // The request it came by has been answered: nothing more may be sent on it.
    this.#live?.finish();
    const task = await record.refresh();
    if (this.#isLeaving) this.leave();
    this.#answered?.resolve();
    return task;
  }

  /** The call has been answered, so its record is no longer needed. */
  release(): void {
    this.#isReleased = true;
    this.#cancelJournal?.();
    this.#answered?.resolve();
  }

  announce(text: string): void {
    this.#announced = text;
    this.#liveTrack()?.report({ message: text });
    this.#record?.announce(text);
  }

  progress(report: ProgressReport): void {
    failpoint("mid-run");
    this.#lastReport = report;
    this.#liveTrack()?.report(report);
    this.#record?.progress(report);
  }

  log(line: LogLine): void {
    if (!this.#isHandedOut) this.#request.watcher.log(line);
  }

  get hangUp(): (() => void) | undefined {
    return this.#request.watcher.hangUp;
  }

  notify(method: string, params: JsonObject): void {
    if (!this.#isHandedOut) this.#request.watcher.notify?.(method, params);
  }

  get #mayRetry(): boolean {
    return this.#request.entry.command.retry !== undefined;
  }

  /** An attempt failed and another follows. It replays the answers to the questions of this one. */
  async #onRetry(text: string): Promise<void> {
    await this.#record?.beginAttempt();
    this.announce(text);
  }

  /** The progress of a run that may be tried again ends with its last attempt. */
  finish(): void {
    if (!this.#mayRetry) this.#finishProgress();
  }

  #finishProgress(): void {
    this.#live?.finish();
    this.#record?.finishProgress();
  }

  room(data: unknown): Promise<unknown> | undefined {
    const waiting = this.#isHandedOut || this.#isReleased ? undefined : this.#request.watcher.room?.(data);
    if (waiting === undefined) return undefined;
    // What becomes a task meanwhile goes to the store, and needs no other room.
    this.#answered ??= Promise.withResolvers<void>();
    return Promise.race([waiting, this.#answered.promise]);
  }

  async ask(question: Question, signal: AbortSignal): Promise<Answer> {
    const { entry, whyNoAnswer } = this.#request;
    if (!this.#canAsk(question))
      throw new CommandError(`${entry.toolName} asks «${question.message}», and ${whyNoAnswer}.`);
    const record = await forCommands(() => this.#onRecord());
    return await this.#runner.waitFor(question, (onAsked) =>
      record.ask(question, signal, (until) => {
        onAsked(until);
        this.#options.onWaiting?.();
        this.#tell("asked");
      }),
    );
  }

  becomesTask(): void {
    this.#tell("long");
  }

  #tell(event: HeldEvent): void {
    if (this.#onEvent === undefined) this.#early.push(event);
    else this.#onEvent(event);
  }

  async #keepStep(name: string, json: string, rules?: Pick<TaskRules, "isSafe">): Promise<void> {
    if (rules !== undefined) return await this.#leaveBehind({ step: name, json, isSafe: rules.isSafe });
    const record = await forCommands(() => this.#onRecord());
    await record.keepStep(name, json);
  }

  async #leaveBehind(left: LeftBehind): Promise<void> {
    this.#left = left;
    await this.#record?.leave(left);
    if (this.#isLeaving) this.leave();
  }

  /** What the one who waits is told; made when there is something to tell. */
  #liveTrack(): ProgressTrack | undefined {
    if (this.#isHandedOut) return undefined;
    this.#live ??= new ProgressTrack({
      clock: this.#options.clock,
      deliver: (update) => this.#request.watcher.progress(update, this.timing),
    });
    return this.#live;
  }

  async #conclude(): Promise<void> {
    const outcome = await this.outcome;
    this.#cancelJournal?.();
    await this.#answered?.promise;
    try {
      const isCounted = this.#isHandedOut ? await this.#settle(outcome) : true;
      if (isCounted) this.#runner.remember(outcome);
      if (!this.#isHandedOut) await this.#forget();
    } finally {
      this.#record?.close();
    }
  }

  #settle(outcome: Outcome): Promise<boolean> {
    return this.#runner.insist(async () => (await this.#record?.conclude(outcome, this.#runner.stopReason)) === true);
  }

  async #forget(): Promise<void> {
    await this.#journal?.catch(() => undefined);
    await this.#record?.forget();
  }

  #journalInTurn(): void {
    this.#cancelJournal = this.#options.records.add(() => {
      this.#onRecord().catch((error: unknown) => {
        if (!isStoreError(error)) this.#options.log.warn("a running call could not be put on record", { error });
      });
    });
  }

  /** Puts the call on record, once; what failed may be tried again. */
  async #onRecord(): Promise<ClaimedTask> {
    this.#journal ??= this.#writeRecord().catch((error: unknown) => {
      this.#journal = undefined;
      throw error;
    });
    await this.#journal;
    if (this.#record === undefined) throw new Cancelled("The task is no longer ours.");
    return this.#record;
  }

  async #writeRecord(): Promise<void> {
    this.#cancelJournal?.();
    const { store, worker, leaseMs } = this.#options;
    const fresh = this.#fresh();
    const claim = { worker, leaseMs };
    const created = await store.create(fresh, {
      joinsEqual: false,
      maxLive: Number.MAX_SAFE_INTEGER,
      keeps: keptOf(fresh.caller),
      claim,
    });
    if (created.kind !== "created") throw new Error("The record of a call was there before it.");
    // One input for both: it may be large.
    const task = { ...created.task, input: fresh.input };
    this.#record = new ClaimedTask(this.#options, task, (reason) => this.stop(reason));
    if (this.#left !== undefined) void this.#record.leave(this.#left);
    if (this.#announced !== undefined) this.#record.announce(this.#announced);
    if (this.#lastReport !== undefined) this.#record.progress(this.#lastReport);
  }

  #fresh(): NewTask {
    const { clock, project, environment, taskTtlMs } = this.#options;
    const { entry, input, caller, origin, progressToken, answered } = this.#request;
    const { estimateMs, isEndless, isProven } = this.#outlook;
    return {
      taskId: createId(),
      caller,
      project,
      environment: environment?.(),
      command: entry.toolName,
      input: input ?? {},
      origin,
      digest: digestOf(entry.toolName, input ?? {}, origin),
      idempotencyKey: undefined,
      reason: "answered while its client waits",
      ttlMs: checkTtl(undefined, caller, taskTtlMs),
      estimateMs,
      isEndless,
      isProven,
      // Until it is handed out nobody would look for it, so it is never run again.
      rules: { isSafe: false, maxAttempts: 1, backoffMs: 0 },
      ageMs: clock.monotonic() - this.#startedAt,
      isCall: true,
      progressToken,
      questions: answered,
    };
  }
}
