import { type Clock, sleep, toTimestamp } from "../clock.ts";
import { asksFirst } from "../command/ask.ts";
import { callerKey, isKnown } from "../command/caller.ts";
import type { CatalogEntry } from "../command/catalog.ts";
import type { CommandLogLevel, LogLine, Origin } from "../command/context.ts";
import type { JsonObject } from "../command/foreign.ts";
import { CommandError, isStoreError, messageOf, ProtocolError, RequestError, RpcCode } from "../errors.ts";
import type { Logger } from "../log.ts";
import { thisProgram } from "../program/program.ts";
import { withinHostLimit } from "../task/answer-deadline.ts";
import type { CallEnding, CallRequest, CallWatcher, Timing } from "../task/call-request.ts";
import type { Calls } from "../task/calls.ts";
import type { EndedCall } from "../task/ended-call.ts";
import { type Engine, TooManyTasks } from "../task/engine.ts";
import type { ProgressUpdate } from "../task/progress.ts";
import { openQuestions, type Task, type TaskQuestion } from "../task/task.ts";
import { sizeOf } from "../task/task-outcome.ts";
import { askAhead, mayAskAhead, withAnswers } from "./ask-ahead.ts";
import { CallQuestions } from "./call-questions.ts";
import { withReferences } from "./call-references.ts";
import { handOver } from "./generation/hand-over.ts";
import type { FollowUpTools } from "./generation/plain.ts";
import { asksForTask, refuseWrongSupport, takesOfCall } from "./generation/task-support.ts";
import { budgetFor, type HostLimitOptions, limitOf } from "./host-limit.ts";
import { admitsHandle, type ListedShapes } from "./listed-shapes.ts";
import { noteOutcome } from "./note-outcome.ts";
import { originOf } from "./origin-of.ts";
import { BacklogPlace, isLarge, makeRoom, type ResultRoom, weighsLarge } from "./outbound.ts";
import type { ParkedCalls } from "./parked-calls.ts";
import type { ToolCall } from "./parts.ts";
import { passNotice } from "./pass-notice.ts";
import { ProgressSender, progressGapMs } from "./progress-sender.ts";
import { canAnswer, canElicit, toAnswer, withReason } from "./questions.ts";
import type { ClientRequest, Result } from "./request.ts";
import type { RequestStates, Resumed } from "./request-states.ts";
import { describeUnstored, describeUntaken, errorResult, toCallResult, whereItWent } from "./results.ts";
import { isBug } from "./router.ts";

export interface CommandCallOptions extends HostLimitOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly isDebug: boolean;
  /** Whoever runs calls, opened when they are first needed. */
  readonly openCalls: () => Calls | Promise<Calls>;
  readonly states: RequestStates;
  readonly parked: ParkedCalls;
  readonly results: ResultRoom;
  /** Absent when the follow-up tools are switched off. */
  readonly plain: FollowUpTools | undefined;
  readonly shapes: ListedShapes;
}

/** How a call ended, or what its client is sent back with. */
type Begun = CallEnding | { readonly result: Result };

/** One tools/call of a command. */
export class CommandCall implements CallWatcher {
  readonly #options: CommandCallOptions;
  readonly #entry: CatalogEntry;
  readonly #call: ToolCall;
  readonly #request: ClientRequest;
  #input: unknown;
  /** There only where the client sent a token. */
  readonly #sender: ProgressSender | undefined;
  #engine: Engine | undefined;
  #place: BacklogPlace | undefined;
  /** There only when a question was shown. */
  #shown: CallQuestions | undefined;

  constructor(options: CommandCallOptions, entry: CatalogEntry, call: ToolCall, request: ClientRequest) {
    this.#options = options;
    this.#entry = entry;
    this.#call = call;
    this.#request = request;
    this.#input = call.arguments;
    this.#sender = this.#createSender();
  }

  /** Nothing is waited for that is there at once: most calls end in the turn that they came in. */
  answer(): Result | Promise<Result> {
    try {
      const { toolName, command } = this.#entry;
      refuseWrongSupport({ toolName, taskSupport: command.taskSupport }, this.#call, this.#request);
      const opened = this.#options.openCalls();
      const answered = opened instanceof Promise ? this.#answerOnceOpen(opened) : this.#answer(opened);
      if (answered instanceof Promise) return this.#finishLater(answered);
      this.#leave();
      return answered;
    } catch (error) {
      this.#leave();
      return this.#toAnswer(error);
    }
  }

  async #finishLater(answered: Promise<Result>): Promise<Result> {
    try {
      return await answered;
    } catch (error) {
      return this.#toAnswer(error);
    } finally {
      this.#leave();
    }
  }

  #leave(): void {
    this.#sender?.finish();
    this.#place?.leaveUnlessUsed();
    this.#shown?.close();
  }

  #toAnswer(error: unknown): Result {
    const isTooMany = asksForTask(this.#call, this.#request) && error instanceof TooManyTasks;
    // What a model can mend is told to the model.
    if (error instanceof CommandError && !isTooMany) return this.#errorResult(error.message);
    throw isTooMany ? new RequestError("busy", error.message) : this.#toThrown(error);
  }

  /** The task store is opened by the first call; while it cannot be opened, the command does not start. */
  async #answerOnceOpen(opening: Promise<Calls>): Promise<Result> {
    return await this.#answer(await this.#inTime(opening, describeUnstored(this.#entry.toolName, false)));
  }

  /** Waits for the task store until shortly before the host gives up. Throws `text` then, and the call goes no further. */
  async #inTime<T>(step: Promise<T>, text: string): Promise<T> {
    const { clock } = this.#options;
    const { arrivedAt } = this.#request;
    const budget = budgetFor(this.#options, this.#request);
    return await withinHostLimit(step, { clock, arrivedAt, budget }, () => {
      throw new CommandError(text);
    });
  }

  #answer(calls: Calls): Result | Promise<Result> {
    this.#engine = calls.engine;
    const begun = this.#begin(calls);
    const end = (ending: Begun) => ("result" in ending ? ending.result : this.#conclude(calls.engine, ending));
    return begun instanceof Promise ? begun.then(end) : end(begun);
  }

  get #isModern(): boolean {
    return this.#request.client.isModern;
  }

  #begin(calls: Calls): Begun | Promise<Begun> {
    const { requestState, caller } = this.#request;
    if (requestState === undefined) return this.#beginWith(calls, undefined);
    const resuming = this.#options.states.resume(requestState, this.#call, caller);
    return this.#inTime(resuming, describeUntaken(this.#entry.toolName)).then((resumed) =>
      this.#beginWith(calls, resumed),
    );
  }

  #beginWith(calls: Calls, resumed: Resumed | undefined): Begun | Promise<Begun> {
    const { command } = this.#entry;
    if (command.references) this.#input = withReferences(this.#call.arguments, this.#request.meta["meanwhile/context"]);
    if (resumed !== undefined && "taskId" in resumed) return this.#rejoin(calls, resumed.taskId);
    return asksFirst(command) ? this.#askFirst(calls, resumed?.asked ?? []) : calls.call(this.#toRequest([]));
  }

  async #askFirst(calls: Calls, asked: readonly TaskQuestion[]): Promise<Begun> {
    const ahead = await this.#settleAhead(asked);
    return "result" in ahead ? ahead : await calls.call(this.#toRequest(ahead.answered));
  }

  /** The questions ahead of any run, where the client can carry them. */
  async #settleAhead(
    asked: readonly TaskQuestion[],
  ): Promise<{ readonly answered: readonly TaskQuestion[] } | { readonly result: Result }> {
    const { command, toolName, path } = this.#entry;
    const { clock } = this.#options;
    const canAsk = canElicit(this.#request.client.capabilities);
    // Nobody could confirm it later: an anonymous caller's tasks are not in the terminal's list.
    const isHopeless = !canAsk && asked.length === 0 && command.confirm !== false && !isKnown(this.#request.caller);
    if (!isHopeless && (!this.#isModern || (!canAsk && asked.length === 0))) return { answered: [] };
    const known = withAnswers(asked, this.#request.inputResponses);
    const ahead = await askAhead(command, this.#input, { known, clock, origin: this.#origin });
    if (ahead.kind === "ready") return { answered: ahead.answered };
    if (ahead.kind === "refused") return { result: this.#errorResult(messageOf(ahead.error)) };
    if (isHopeless)
      return { result: this.#errorResult(`${toolName} asks «${ahead.asked[0]?.message}», and ${whyNoAnswer(path)}.`) };
    return { result: await this.#sendBack(ahead.asked, { asked: ahead.asked }, false) };
  }

  /** The second leg of a call that waits for an answer. */
  async #rejoin(calls: Calls, taskId: string): Promise<Begun> {
    const { engine } = calls;
    const caller = callerKey(this.#request.caller);
    const { toolName } = this.#entry;
    const task = await this.#inTime(engine.get(caller, taskId), describeUntaken(toolName));
    this.#options.parked.unpark(taskId);
    const responses = this.#request.inputResponses;
    const answers = openQuestions(task).filter(({ key }) => Object.hasOwn(responses, key));
    try {
      const given = answers.map((question) => [question.key, toAnswer(responses[question.key], question)]);
      const taken = engine.answer(caller, taskId, Object.fromEntries(given));
      await this.#inTime(taken, describeUnstored(toolName, true));
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      const open = openQuestions(await this.#inTime(engine.get(caller, taskId), describeUnstored(toolName, true)));
      this.#options.parked.park(engine, caller, taskId, open);
      const asked = open.map((question) => withReason(question, error.message));
      return { result: await this.#sendBack(asked, { taskId }, true) };
    }
    return await calls.rejoin(taskId, this.#toRequest([]));
  }

  /** Sends the client away with questions and the state that leads back. */
  #sendBack(asked: readonly TaskQuestion[], to: Resumed, hasStarted: boolean): Promise<Result> {
    const answer = this.#options.states.toInputRequired(asked, to, this.#call, this.#request.caller);
    return this.#inTime(answer, describeUnstored(this.#entry.toolName, hasStarted));
  }

  #toRequest(answered: readonly TaskQuestion[]): CallRequest {
    const { meta, client, connection, exchange, outbound } = this.#request;
    const isModernHttp = this.#isModern && this.#request.door === "http";
    const key = meta["meanwhile/idempotencyKey"];
    const takes = takesOfCall(this.#call, this.#request, this.#options.plain !== undefined);
    const asksAhead = mayAskAhead(this.#entry.command, this.#request);
    return {
      entry: this.#entry,
      input: this.#input,
      caller: callerKey(this.#request.caller),
      origin: this.#origin,
      client: takes,
      limit: limitOf(this.#options, this.#request),
      progressToken: this.#request.progressToken,
      isNew: meta["meanwhile/new"] === true,
      // Callers who cannot be told apart must not be given each other's runs.
      idempotencyKey: typeof key === "string" && key !== "" && isKnown(this.#request.caller) ? key : undefined,
      asksAhead,
      answered,
      whenAsked: (questions) =>
        (takes.canTakeTask && !asksAhead) || !questions.every((question) => canAnswer(question, client.capabilities))
          ? "handOut"
          : this.#isModern
            ? "park"
            : "elicit",
      whyNoAnswer: whyNoAnswer(this.#entry.path),
      watcher: this,
      delivered: async () => void (await outbound.whenLeft(this.#request.id)),
      arrivedAt: this.#request.arrivedAt,
      gone: this.#request.signal,
      // On 2026-07-28 over HTTP a closed stream means "cancel"; elsewhere a client that is lost has cancelled nothing.
      isLost: () => !isModernHttp && connection.closed.aborted,
      dropped: isModernHttp ? undefined : exchange,
    };
  }

  progress(update: ProgressUpdate, timing: Timing): void {
    this.#sender?.update(update, timing);
  }

  beat(timing: Timing): void {
    this.#sender?.beat(timing);
  }

  log(line: LogLine): void {
    if (this.#request.signal.aborted) return;
    const data = line.details === undefined ? line.text : { message: line.text, details: line.details };
    this.#request.log(mcpLevels[line.level], data, this.#entry.toolName);
  }

  notify(method: string, params: JsonObject): void {
    if (!this.#request.signal.aborted) passNotice(method, params, this.#request);
  }

  get hangUp(): (() => void) | undefined {
    return this.#request.hangUp;
  }

  room(data: unknown): Promise<unknown> | undefined {
    return weighsLarge(data) ? this.#myPlace.wait(data) : undefined;
  }

  questions(task: Task, open: readonly TaskQuestion[]): void {
    this.#shown ??= new CallQuestions(this.#request, this.#options.log);
    if (this.#engine !== undefined) this.#shown.show(this.#engine, task, open);
  }

  get #myPlace(): BacklogPlace {
    this.#place ??= new BacklogPlace(this.#request, this.#options.results);
    return this.#place;
  }

  #conclude(engine: Engine, ending: CallEnding): Result | Promise<Result> {
    if (ending.kind === "asked") {
      const { taskId } = ending.task;
      const open = openQuestions(ending.task);
      this.#options.parked.park(engine, callerKey(this.#request.caller), taskId, open);
      return this.#sendBack(open, { taskId }, true);
    }
    if (ending.kind === "deferred")
      return handOver(ending, {
        ...this.#options,
        engine,
        toolName: this.#entry.toolName,
        isForeign: this.#entry.command.foreign !== undefined,
        request: this.#request,
        budget: () => budgetFor(this.#options, this.#request),
      });
    if (ending.kind === "unstored") return this.#errorResult(describeUnstored(this.#entry.toolName, ending.hasStarted));
    if (ending.kind === "left")
      return this.#errorResult(whereItWent(ending, this.#entry.toolName, this.#request.caller));
    this.#sender?.finish();
    const bytes = sizeOf(ending.outcome);
    const leavesAtOnce = this.#sender === undefined && !ending.isOnRecord && !isLarge(bytes);
    if (!leavesAtOnce) return this.#leaveInTurn(ending, bytes);
    ending.finish(true);
    return this.#toResult(ending);
  }

  async #leaveInTurn(ending: EndedCall, bytes: number): Promise<Result> {
    const { clock } = this.#options;
    const sinceProgressMs = clock.monotonic() - (this.#sender?.lastSentAt ?? Number.NEGATIVE_INFINITY);
    if (sinceProgressMs < progressGapMs) await sleep(clock, progressGapMs - sinceProgressMs);
    await makeRoom(ending, bytes, this.#request, this.#myPlace);
    return this.#toResult(ending);
  }

  #toResult({ outcome, note, taskId }: EndedCall): Result {
    noteOutcome(outcome, this.#options.log, { tool: this.#entry.toolName, caller: this.#request.caller.kind });
    if (outcome.ending === "failed" && outcome.rpc !== undefined)
      throw new ProtocolError(outcome.rpc.code, outcome.rpc.message, outcome.rpc.data);
    return toCallResult(outcome, this.#entry.command, {
      withLog: this.#options.isDebug || this.#request.client.wantsLog,
      progressToken: this.#request.progressToken,
      taskId,
      hasOwnSchema: this.#hasOwnSchema,
      note:
        note === undefined
          ? undefined
          : { type: "info", text: note, timestamp: toTimestamp(this.#options.clock.now()) },
    });
  }

  /** See `ErrorTerms`. */
  get #hasOwnSchema(): boolean {
    const { shapes, plain } = this.#options;
    return shapes.wasForTasks(this.#request) || !admitsHandle(this.#request, plain !== undefined);
  }

  #errorResult(text: string): Result {
    const terms = { command: this.#entry.command, hasOwnSchema: this.#hasOwnSchema };
    return errorResult(text, this.#options.clock, terms);
  }

  get #origin(): Origin {
    return originOf(this.#request, this.#entry.command);
  }

  #createSender(): ProgressSender | undefined {
    const request = this.#request;
    const token = request.progressToken;
    if (token === undefined) return undefined;
    return new ProgressSender({
      token,
      monotonic: () => this.#options.clock.monotonic(),
      send: (params) => {
        if (!request.signal.aborted) request.notify("notifications/progress", params);
      },
    });
  }

  #toThrown(error: unknown): unknown {
    // What is wrong with the store, the store has said.
    if (!(error instanceof RequestError || error instanceof ProtocolError || isStoreError(error)))
      this.#options.log.error("a call failed", { tool: this.#entry.toolName, error });
    return isBug(error) ? new ProtocolError(RpcCode.Internal, "Internal error") : error;
  }
}

function whyNoAnswer(path: readonly string[]): string {
  const typed = thisProgram.typed(path.join(" "));
  return `this client cannot show questions; ${typed === undefined ? "call it with one that can" : `run it in a terminal: ${typed}`}`;
}

const mcpLevels = { debug: "debug", info: "info", warn: "warning", error: "error" } as const satisfies Record<
  CommandLogLevel,
  string
>;
