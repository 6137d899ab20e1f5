import { type Clock, nextTurn, within } from "../clock.ts";
import type { Question } from "../command/context.ts";
import type { Outcome } from "../command/outcome.ts";
import { Cancelled, CommandError, isStoreError, ShuttingDown } from "../errors.ts";
import type { Logger } from "../log.ts";
import { AnswerDeadline } from "./answer-deadline.ts";
import { Bells, type CallEvent, handOutReasons, listenFor, Mailbox } from "./call-events.ts";
import {
  type CallEnding,
  type CallRequest,
  interruptedNote,
  joinedNote,
  toCreation,
  undelivered,
  type WhenAsked,
} from "./call-request.ts";
import { createHere, createOnRecord, elsewhere, whyOnRecord } from "./create-here.ts";
import { Decisions, type Inline, nothingDeferred } from "./decisions.ts";
import { type Decision, type DeferralRules, defaultDeferral } from "./deferral.ts";
import { dismissUnanswerable } from "./dismiss-unanswerable.ts";
import { EndedCall, type EndedCallOptions } from "./ended-call.ts";
import type { CreatedTask, Engine, EqualTasks } from "./engine.ts";
import type { HeldCall } from "./held-call.ts";
import type { History } from "./history.ts";
import { callPlaces, checkInputSize, checkTtl, longResultChars, TooManyCalls } from "./limits.ts";
import type { Outlook } from "./outlook.ts";
import { ProgressReader } from "./progress.ts";
import { rulesOf } from "./retry.ts";
import { Shares } from "./shares.ts";
import { timingOf } from "./status-line.ts";
import { isTerminal, openQuestions, type Task } from "./task.ts";
import { outcomeOf, sizeOf } from "./task-outcome.ts";
import { isInterrupted } from "./transitions.ts";
import { inTwoTurns } from "./two-turns.ts";
import type { Worker } from "./worker.ts";

export interface CallsOptions {
  readonly engine: Engine;
  readonly worker: Worker;
  readonly history: History;
  readonly clock: Clock;
  readonly log: Logger;
  readonly deferral?: DeferralRules | undefined;
  /** See `EngineOptions`. */
  readonly taskTtlMs?: number | undefined;
}

/** One call, and what was decided about it. */
interface Decided {
  readonly request: CallRequest;
  readonly deadline: AnswerDeadline;
  readonly decision: Inline;
  readonly outlook: Outlook;
}

/** How a task is followed in place of a call. */
interface FollowTerms {
  /** False when the call was attached to the run of another. */
  readonly isOwn: boolean;
  readonly note?: string | undefined;
  /** Ends the call when the task is interrupted. Default: with the outcome of the task. */
  readonly onInterrupted?: (task: Task) => CallEnding | Promise<CallEnding>;
}

/** How long a call that could not be converted to a task waits before it tries again. */
const deferralRetryMs = 1_000;
/** The answer of a run that was shorter is not kept waiting by another look for interrupted calls. */
const lateNoteAfterMs = 1_000;
/** How long an answer waits for that look. */
const lateNoteMs = 250;

/**
 * Answers calls: while the client waits where that is short, as a task where it is not. Stands above the engine, which
 * knows nothing of it.
 */
export class Calls {
  readonly engine: Engine;
  readonly #options: CallsOptions;
  readonly #held = new Shares(callPlaces);
  readonly #long = new Bells();
  readonly #decisions: Decisions;
  readonly #keepInlineMs: number;

  constructor(options: CallsOptions) {
    this.#options = options;
    this.#keepInlineMs = (options.deferral ?? defaultDeferral).keepInlineMs;
    this.#decisions = new Decisions(options.deferral);
    this.engine = options.engine;
  }

  /** At once where the command answers at once. */
  call(request: CallRequest): CallEnding | Promise<CallEnding> {
    this.#refuseWhenLeaving();
    const { entry, input, caller, origin } = request;
    checkInputSize(input, caller);
    const deadline = this.#deadlineOf(request);
    const outlook = this.#options.history.look(entry.toolName, entry.command, input, origin);
    return outlook instanceof Promise
      ? deadline.beforeStart(outlook, (known) => this.#answer(request, deadline, known))
      : this.#answer(request, deadline, outlook);
  }

  #deadlineOf(request: CallRequest): AnswerDeadline {
    const { clock, log } = this.#options;
    return new AnswerDeadline(request, { clock, log, keepInlineMs: this.#keepInlineMs });
  }

  #answer(request: CallRequest, deadline: AnswerDeadline, outlook: Outlook): CallEnding | Promise<CallEnding> {
    const decision = this.#decisions.decide(request, outlook);
    if (decision.kind === "now") return deadline.guard(this.#defer({ request, deadline, decision, outlook }), decision);
    this.#refuseTooMany(request.caller);
    const decided = { request, deadline, decision, outlook };
    const why = whyOnRecord(request, this.#options.worker);
    if (why !== undefined) return deadline.guard(this.#runOnRecord(decided, why), decision);
    if (!this.#options.engine.mayHaveEqual(request)) return this.#run(decided);
    return deadline.beforeStart(this.#options.engine.findEqual(request), (equal) => this.#joinOrRun(equal, decided));
  }

  async #defer(decided: Omit<Decided, "decision"> & { decision: Decision & { kind: "now" } }): Promise<CallEnding> {
    const { worker } = this.#options;
    const { request, deadline, decision, outlook } = decided;
    const { client, delivered } = request;
    const made = Promise.withResolvers<void>();
    // A task that its client was not told of in time is cancelled before its run begins.
    const mayBegin = () => (deadline.wasRefused ? made.promise : undefined);
    const creation = {
      ...toCreation(request, decision.reason),
      ttlMs: client.asked?.ttlMs,
      // The first lines of a run may block this process: it does not begin before its id has reached the client.
      onId:
        delivered === undefined
          ? undefined
          : (taskId: string) => worker.awaitDelivery(taskId, delivered().then(mayBegin)),
      // 2025-11-25 answers with the task whatever its input is; the refusal is its result.
      isUnchecked: client.asked !== undefined && !client.canTakeTask,
    };
    try {
      const created = await createHere(this.#options, creation, outlook.isEndless);
      const { task, isJoined } = created;
      await this.#cancelTakenBack(task, decided, isJoined);
      return { kind: "deferred", as: decision.as, task, isJoined, note: this.#noteOn(created) };
    } finally {
      made.resolve();
    }
  }

  /** To be remembered, or run elsewhere, it is a task from the start, though it is answered like any call. */
  async #runOnRecord(decided: Decided, reason: string): Promise<CallEnding> {
    const { request, deadline, decision } = decided;
    const created = await createOnRecord(this.#options, toCreation(request, reason));
    deadline.noteStart();
    const { task, isJoined } = created;
    await this.#cancelTakenBack(task, decided, isJoined);
    return await this.#follow(task, request, decision, { isOwn: !isJoined, note: this.#noteOn(created) });
  }

  #joinOrRun({ live, interrupted }: EqualTasks, decided: Decided): CallEnding | Promise<CallEnding> {
    this.#refuseWhenLeaving();
    if (live === undefined) return this.#runAnew(interrupted, decided);
    const { request, deadline, decision } = decided;
    deadline.noteStart();
    const onInterrupted = (task: Task) => {
      this.engine.nameInterrupted(task);
      return this.#runAnew(task, decided);
    };
    const note = this.#joined(live, false);
    const followed = this.#follow(live, request, decision, { isOwn: false, note, onInterrupted });
    return deadline.guard(followed, decision);
  }

  /** Runs it and names the equal call that was interrupted, if there was one. */
  #runAnew(interrupted: Task | undefined, decided: Decided): CallEnding | Promise<CallEnding> {
    const note = interrupted === undefined ? undefined : interruptedNote(interrupted, this.engine.now());
    return this.#run(note === undefined ? decided : { ...decided, decision: { ...decided.decision, note } });
  }

  /** The second part of a call that was answered with a question. */
  async rejoin(taskId: string, request: CallRequest): Promise<CallEnding> {
    const { engine, history } = this.#options;
    const { entry, input, origin, caller } = request;
    const known = Promise.all([
      engine.get(caller, taskId),
      history.look(entry.toolName, entry.command, input, origin),
    ] as const);
    const deadline = this.#deadlineOf(request);
    deadline.noteStart();
    return await deadline.beforeStart(known, ([task, { p95Ms }]) => this.#followAgain(task, p95Ms, request, deadline));
  }

  #followAgain(
    task: Task,
    p95Ms: number | undefined,
    request: CallRequest,
    deadline: AnswerDeadline,
  ): CallEnding | Promise<CallEnding> {
    const decision = this.#decisions.decide(request, {
      p95Ms,
      estimateMs: task.estimateMs,
      isEndless: task.isEndless,
      isProven: task.isProven,
    });
    const isAnswered = isTerminal(task);
    if (decision.kind === "now" && !isAnswered)
      return { kind: "deferred", as: decision.as, task, isJoined: false, note: undefined };
    this.#refuseTooMany(request.caller);
    const inline = decision.kind === "now" ? nothingDeferred(decision.reason) : decision;
    return deadline.guard(this.#follow(task, request, inline, { isOwn: true }), inline);
  }

  /** Runs it here, and hands it out when the client cannot wait any longer. */
  #run(decided: Decided): CallEnding | Promise<CallEnding> {
    const { request, decision, outlook } = decided;
    const canAsk = (question: Question) =>
      request.whenAsked([question]) !== "handOut" || decision.deferAs !== undefined;
    const call = this.#options.worker.runCall(request, { outlook, canAsk });
    const { outcome } = call;
    return outcome instanceof Promise ? this.#runOn(call, outcome, decided) : this.#endedAtOnce(call, outcome, decided);
  }

  /** Most of what has to be awaited ends within a turn or two, and is held for nobody. */
  #runOn(call: HeldCall, outcome: Promise<Outcome>, decided: Decided): Promise<CallEnding> {
    return new Promise((resolve, reject) => {
      let isYoung = true;
      outcome
        .then((ending) => {
          if (isYoung) resolve(this.#endedAtOnce(call, ending, decided));
          isYoung = false;
        })
        .catch(reject);
      inTwoTurns(() => {
        if (isYoung) resolve(this.#hold(call, decided));
        isYoung = false;
      });
    });
  }

  #endedAtOnce(call: HeldCall, outcome: Outcome, decided: Decided): CallEnding | Promise<CallEnding> {
    if (!call.isUnrecorded || sizeOf(outcome) > longResultChars) return this.#hold(call, decided);
    call.remember(outcome);
    return this.#toEnded({ outcome, note: decided.decision.note });
  }

  #hold(call: HeldCall, decided: Decided): Promise<CallEnding> {
    const { deadline, decision } = decided;
    deadline.noteStart();
    return deadline.guard(this.#holdUntilAnswered(call, decided), decision);
  }

  async #holdUntilAnswered(call: HeldCall, decided: Decided): Promise<CallEnding> {
    const { worker, clock } = this.#options;
    const { request, decision } = decided;
    const mail = new Mailbox();
    worker.holdCall(call, (event) => this.#long.pass(event, call, mail));
    void call.ended.then(this.#held.take(request.caller));
    void Promise.resolve(call.outcome).then(() => mail.put("ended"));
    const stopListening = listenFor(request, decision, { mail, worker, clock, timing: () => call.timing });
    try {
      return await this.#untilAnswered(call, mail, decided);
    } catch (error) {
      call.release();
      throw error;
    } finally {
      stopListening();
    }
  }

  async #untilAnswered(call: HeldCall, mail: Mailbox, decided: Decided): Promise<CallEnding> {
    const { request, decision } = decided;
    let isCancelled = false;
    let cancelRetry = () => {};
    for (;;) {
      const event = await mail.next();
      cancelRetry();
      if (event === "ended") {
        const outcome = await call.outcome;
        const note = decision.note ?? (await this.#findLateNote(call, outcome, request));
        return this.#ended(call, outcome, request, note === undefined ? decision : { ...decision, note });
      }
      isCancelled ||= event === "cancelled";
      if (event === "cancelled") call.stop(new Cancelled());
      // What its client wants no longer only has to end.
      if (isCancelled) continue;
      const how = event === "asked" ? await this.#show(call, request) : undefined;
      const why = how === "elicit" ? undefined : handOutReasons[event]?.(decision);
      const handedOut = why === undefined ? undefined : await this.#handOut(call, request, why);
      if (handedOut === undefined && event === "leaving") return await this.#leaveUnkept(call, request, decision);
      if (event === "late" && handedOut === undefined)
        cancelRetry = this.#options.clock.after(deferralRetryMs, () => mail.put("late"));
      if (handedOut === undefined) continue;
      const task = await dismissUnanswerable(handedOut, request, this.#options.engine);
      await this.#cancelTakenBack(task, decided, false);
      if (how === "park") return { kind: "asked", task };
      return this.#deferred(event, decision, task, { isOwn: true, note: decision.note });
    }
  }

  /**
   * An equal call may have been interrupted whose worker was not known to be dead when this run began: that of another
   * machine is when its lease has expired.
   */
  async #findLateNote(call: HeldCall, { ending }: Outcome, request: CallRequest): Promise<string | undefined> {
    const { engine, clock } = this.#options;
    if (ending === "cancelled" || call.timing.elapsedMs < lateNoteAfterMs) return undefined;
    const task = await within(clock, lateNoteMs, engine.findLateInterrupted(request, call.taskId));
    return task === undefined ? undefined : interruptedNote(task, engine.now());
  }

  /** What becomes of a call that asks; where its client is asked while it waits, that is done. */
  async #show(call: HeldCall, { caller, whenAsked, watcher }: CallRequest): Promise<WhenAsked> {
    const task = await this.#options.engine.get(caller, call.taskId);
    const open = openQuestions(task);
    const how = open.length === 0 ? "elicit" : whenAsked(open);
    if (how === "elicit") watcher.questions(task, open);
    return how;
  }

  /** Where its client takes neither a task nor a handle, a call becomes a task only for those who come later. */
  #deferred(event: CallEvent, { deferAs }: Inline, task: Task, { isOwn, note }: FollowTerms): CallEnding {
    if (event === "leaving" && deferAs === undefined)
      return { kind: "left", taskId: task.taskId, isSafe: task.rules.isSafe };
    return { kind: "deferred", as: deferAs ?? "handle", task, isJoined: !isOwn, note };
  }

  /** It could not be made a task: its client has to know, unless there is an answer by now. */
  async #leaveUnkept(call: HeldCall, request: CallRequest, decision: Inline): Promise<CallEnding> {
    const outcome = await Promise.race([call.outcome, nextTurn()]);
    if (outcome !== undefined) return this.#ended(call, outcome, request, decision);
    const isSafe = call.mayBeRepeated;
    if (isSafe) call.stop(new ShuttingDown());
    call.release();
    return { kind: "left", taskId: undefined, isSafe };
  }

  /**
   * Cancels a task whose ID nobody has: its call was cancelled, or answered with an error, before the task was stored.
   * One with an idempotency key stays: the next call with the key gets it.
   */
  async #cancelTakenBack(
    task: Task,
    { request, deadline }: Pick<Decided, "request" | "deadline">,
    isJoined: boolean,
  ): Promise<void> {
    const { gone, isLost, caller, idempotencyKey } = request;
    const isUnwanted = (gone.aborted && !isLost()) || (deadline.wasRefused && idempotencyKey === undefined);
    if (isUnwanted && !isJoined) await this.#options.engine.cancel(caller, task.taskId, undelivered);
  }

  /** Undefined when it could not be handed out: then the client has to wait on. */
  async #handOut(call: HeldCall, request: CallRequest, reason: string): Promise<Task | undefined> {
    const { worker, log, taskTtlMs } = this.#options;
    try {
      const task = await call.handOut({
        reason,
        ttlMs: checkTtl(undefined, request.caller, taskTtlMs),
        rules: rulesOf(request.entry.command),
      });
      if (task !== undefined) worker.start();
      return task;
    } catch (error) {
      const why = isStoreError(error) ? {} : { error };
      log.warn("a running call could not be made a task; its client waits on", {
        tool: request.entry.toolName,
        ...why,
      });
      return undefined;
    }
  }

  #ended(call: HeldCall, outcome: Outcome, request: CallRequest, { note }: Inline): CallEnding {
    return this.#toEnded(
      { outcome, note, call, handOut: (run, reason) => this.#handOut(run, request, reason) },
      request.caller,
    );
  }

  #toEnded(about: Omit<EndedCallOptions, "read" | "remove">, caller = ""): EndedCall {
    const { engine, log } = this.#options;
    const remove = (taskId: string) =>
      engine
        .prune(caller, taskId)
        .catch((error: unknown) => log.debug("the record of an answer that has left could not be removed", { error }));
    return new EndedCall({ ...about, read: (taskId) => engine.get(caller, taskId), remove });
  }

  /** Waits for a task that runs already, here or elsewhere, as if it were this call. */
  async #follow(begun: Task, request: CallRequest, decision: Inline, terms: FollowTerms): Promise<CallEnding> {
    const { engine, worker, clock } = this.#options;
    const { caller, watcher } = request;
    const giveBack = this.#held.take(caller);
    const { isOwn, note, onInterrupted } = terms;
    // One that was only made for the want of a worker here leaves nothing behind, unless others may have joined it.
    const isAside = isOwn && whyOnRecord(request, worker) === elsewhere && !engine.joinsEqual(request);
    const timing = () => timingOf(begun, engine.now());
    const mail = new Mailbox();
    const stopListening = listenFor(request, decision, { mail, worker, clock, timing });
    const stopHearing = this.#long.listen(begun.taskId, () => decision.deferAs === "task" && mail.put("long"));
    const shown = new Set<string>();
    const stop = new AbortController();
    const isNews = (task: Task) => isTerminal(task) || openQuestions(task).some(({ key }) => !shown.has(key));
    const reader = new ProgressReader(begun);
    const onTask = (task: Task) => {
      const update = reader.next(task);
      if (update !== undefined) watcher.progress(update, timing());
    };
    try {
      for (;;) {
        const waited = engine.wait(caller, begun.taskId, { until: isNews, signal: stop.signal, onTask });
        const event = await Promise.race([waited, mail.next()]);
        if (typeof event !== "string") {
          if (onInterrupted !== undefined && isInterrupted(event)) return await onInterrupted(event);
          if (isTerminal(event)) {
            const record = isAside ? { asideId: event.taskId } : { taskId: event.taskId };
            return this.#toEnded({ outcome: outcomeOf(event), note, ...record }, caller);
          }
          const open = openQuestions(event);
          for (const { key } of open) shown.add(key);
          const how = request.whenAsked(open);
          if (how === "park") return { kind: "asked", task: event };
          if (how === "elicit") watcher.questions(event, open);
          else if (decision.deferAs !== undefined)
            return { kind: "deferred", as: decision.deferAs, task: event, isJoined: !isOwn, note };
          else if (isOwn)
            await engine.cancel(caller, event.taskId, `It asks «${open[0]?.message}», and ${request.whyNoAnswer}.`);
          continue;
        }
        waited.catch(() => undefined);
        if (event === "cancelled" && isOwn) await engine.cancel(caller, begun.taskId);
        const task = await engine.get(caller, begun.taskId);
        if (event === "cancelled" && isAside) await engine.prune(caller, begun.taskId);
        return this.#deferred(event, decision, task, terms);
      }
    } finally {
      stop.abort(new Cancelled());
      stopListening();
      stopHearing();
      giveBack();
    }
  }

  #refuseTooMany(caller: string): void {
    if (!this.#held.mayTake(caller)) throw new TooManyCalls(this.#held.heldBy(caller), caller);
  }

  #refuseWhenLeaving(): void {
    if (this.#options.worker.isStopped) throw new CommandError("The server is shutting down; call again in a moment.");
  }

  #noteOn({ task, isJoined, isRepeated, interrupted }: CreatedTask): string | undefined {
    if (isJoined) return this.#joined(task, isRepeated);
    return interrupted === undefined ? undefined : interruptedNote(interrupted, this.engine.now());
  }

  #joined(task: Task, isRepeated: boolean): string {
    return joinedNote(task, isRepeated, this.engine.now());
  }
}
