import { type Clock, sleep, toTimestamp } from "../clock.ts";
import type { CatalogEntry } from "../command/catalog.ts";
import type { CommandLogLevel, LogLine, Origin } from "../command/context.ts";
import { asksFirst, type Outcome } from "../command/run.ts";
import { isReference, resolveReference } from "../completion/references.ts";
import {
  CommandError,
  InputError,
  internalErrorCode,
  isStoreError,
  messageOf,
  ProtocolError,
  RequestError,
} from "../errors.ts";
import { type Budget, budgetOf } from "../host/budget.ts";
import { findHost, type HostLimit, type HostOverride, type HostProfile } from "../host/profiles.ts";
import type { Logger } from "../log.ts";
import {
  type CallEnding,
  type CallRequest,
  type Calls,
  type CallWatcher,
  type Timing,
  undelivered,
} from "../task/calls.ts";
import type { EndedCall } from "../task/ended-call.ts";
import { type Engine, TooManyTasks } from "../task/engine.ts";
import { sizeOf } from "../task/outcome.ts";
import type { ProgressUpdate } from "../task/progress.ts";
import { openQuestions, type Task, type TaskQuestion } from "../task/task.ts";
import { knowsTaskSupport } from "../wire/revisions.ts";
import { callerKey, isKnown } from "./caller.ts";
import { announceJob, jobsCapability, toJobAnswer } from "./generation/jobs.ts";
import { isLarge, BacklogPlace } from "./outbound.ts";
import type { ToolCall } from "./parts.ts";
import type { FollowUpTools } from "./generation/plain.ts";
import { ProgressSender, progressGapMs } from "./progress-sender.ts";
import {
  askAhead,
  canElicit,
  elicit,
  type RequestStates,
  type Resumed,
  stateLivesMs,
  toAnswer,
  toInputRequest,
  withAnswers,
} from "./questions.ts";
import type { ClientIdentity, ClientRequest, Result } from "./request.ts";
import { errorResult, toCallResult } from "./results.ts";
import { isBug } from "./router.ts";
import { toTask2026 } from "./task-wire.ts";
import { answerUntilFits, wrongTaskSupport } from "./generation/tasks-2025.ts";
import { missingTasks, takesTasks } from "./generation/tasks-2026.ts";

export interface CommandCallOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly isDebug: boolean;
  /** Whoever runs calls, opened when they are first needed. */
  readonly openCalls: () => Calls | Promise<Calls>;
  readonly states: RequestStates;
  /** Calls that were sent back with a question, each with what keeps its clock from running out. */
  readonly parked: Map<string, () => void>;
  /** Absent when the follow-up tools are switched off. */
  readonly plain: FollowUpTools | undefined;
  readonly hosts: Readonly<Record<string, HostOverride>>;
  /** No call stays open longer. */
  readonly keepInlineMs: number;
  /** Counts in place of what the client calls itself. */
  readonly hostName: string | undefined;
}

/** A client has to have read the answer that made a task before it hears of the task. */
const followGapMs = 50;

/** What a client of 2026-07-28 says when it would rather have a task: that revision leaves it to the server. */
const taskHint = "meanwhile/task";
/** One for all: an error made anew, with its stack, is most of what ending a wait costs. */
const unparked = new Error("The call is not parked any more.");

/** `params.task` means something in one generation only. */
export function asksForTask({ task }: ToolCall, { client }: ClientRequest): boolean {
  if (client.isModern || task === undefined || !knowsTaskSupport(client.revision)) return false;
  if (typeof task !== "object" || task === null || Array.isArray(task))
    throw new ProtocolError(-32602, "`task` must be an object, e.g. { ttl: 60000 }.");
  return true;
}

type NamedLimit = HostLimit & { readonly host: string };
const namedLimits = new WeakMap<HostProfile, Readonly<Record<ClientRequest["door"], NamedLimit>>>();

/**
 * What this request's host does with a slow call; one object for a host, so that what was decided by it can be kept.
 */
function limitOf(options: CommandCallOptions, { connection, client, door }: ClientRequest): NamedLimit {
  const profile = findHost(connection.hostName ?? options.hostName ?? client.name, options.hosts);
  const { limits, name: host } = profile;
  const named = namedLimits.get(profile) ?? { stdio: { ...limits.stdio, host }, http: { ...limits.http, host } };
  namedLimits.set(profile, named);
  return named[door];
}

type Wish = CallRequest["client"];
const wishes = new Map<number, Wish>();

/** What a client that asks for nothing could take: one object for all who could take the same. */
function wishOf(options: CommandCallOptions, { isModern, capabilities, revision }: ClientIdentity): Wish {
  const canTakeTask = isModern && takesTasks(capabilities);
  const canTakeUnasked = !isModern && knowsTaskSupport(revision);
  const declaresTasks = canTakeTask || (capabilities as { tasks?: unknown }).tasks !== undefined;
  const takesJobs = !isModern && capabilities.experimental?.[jobsCapability] !== undefined;
  const canFollowUp = options.plain !== undefined;
  const key =
    Number(canTakeTask) +
    2 * Number(canTakeUnasked) +
    4 * Number(declaresTasks) +
    8 * Number(takesJobs) +
    16 * Number(canFollowUp);
  const wish = wishes.get(key) ?? {
    asked: undefined,
    canTakeTask,
    canTakeUnasked,
    declaresTasks,
    takesJobs,
    canFollowUp,
  };
  wishes.set(key, wish);
  return wish;
}

/**
 * How long a follow-up tool may wait here; a client that sends a token with this call is taken to send one with the
 * next.
 */
export function budgetFor(options: CommandCallOptions, request: ClientRequest): Budget {
  return budgetOf(limitOf(options, request), request.progressToken !== undefined, options.keepInlineMs);
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
  /** Aborted once the request has been answered; there only when a question was shown. */
  #answered: AbortController | undefined;

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
      this.#refuseWrongSupport();
      const opened = this.#options.openCalls();
      const answered = opened instanceof Promise ? opened.then((calls) => this.#answer(calls)) : this.#answer(opened);
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
    this.#answered?.abort();
  }

  #toAnswer(error: unknown): Result {
    const isTooMany = this.#isAsked && error instanceof TooManyTasks;
    // What a model can mend is told to the model.
    if (error instanceof CommandError && !isTooMany) return errorResult(error.message, this.#options.clock);
    throw isTooMany ? new RequestError("busy", error.message) : this.#toThrown(error);
  }

  #answer(calls: Calls): Result | Promise<Result> {
    this.#engine = calls.engine;
    const begun = this.#begin(calls);
    return begun instanceof Promise ? begun.then((ending) => this.#end(calls, ending)) : this.#end(calls, begun);
  }

  #end({ engine }: Calls, ending: Begun): Result | Promise<Result> {
    return "result" in ending ? ending.result : this.#conclude(engine, ending);
  }

  get #isModern(): boolean {
    return this.#request.client.isModern;
  }

  get #isAsked(): boolean {
    return asksForTask(this.#call, this.#request);
  }

  /**
   * What the client asked for: with `params.task`, or since 2026-07-28 with a hint, which counts when it can take a
   * task.
   */
  get #asked(): { readonly ttlMs: unknown } | undefined {
    if (this.#isAsked) return { ttlMs: (this.#call.task as { ttl?: unknown }).ttl };
    const hint =
      this.#isModern && takesTasks(this.#request.client.capabilities) ? this.#request.meta[taskHint] : undefined;
    if (hint === undefined) return undefined;
    if (typeof hint !== "object" || hint === null || Array.isArray(hint))
      throw new ProtocolError(-32602, `\`_meta["${taskHint}"]\` must be an object, e.g. { ttlMs: 60000 }.`);
    return { ttlMs: (hint as { ttlMs?: unknown }).ttlMs };
  }

  #refuseWrongSupport(): void {
    const { taskSupport } = this.#entry.command;
    if (taskSupport === "required" && this.#isModern && !takesTasks(this.#request.client.capabilities))
      throw missingTasks();
    if (taskSupport === "required" && !this.#isModern && !this.#isAsked)
      throw wrongTaskSupport(this.#entry.toolName, taskSupport);
    if (taskSupport === "forbidden" && this.#isAsked) throw wrongTaskSupport(this.#entry.toolName, taskSupport);
  }

  #begin(calls: Calls): Begun | Promise<Begun> {
    const { command } = this.#entry;
    const resumed = this.#resumed();
    if (command.references) this.#input = withReferences(this.#call.arguments, this.#request.meta["meanwhile/context"]);
    if (resumed !== undefined && "taskId" in resumed) return this.#rejoin(calls, resumed.taskId);
    return asksFirst(command) ? this.#askFirst(calls, resumed?.asked ?? []) : calls.call(this.#toRequest([]));
  }

  async #askFirst(calls: Calls, asked: readonly TaskQuestion[]): Promise<Begun> {
    const ahead = await this.#settleAhead(asked);
    return "result" in ahead ? ahead : await calls.call(this.#toRequest(ahead.answered));
  }

  #resumed(): Resumed | undefined {
    const { requestState, caller } = this.#request;
    return requestState === undefined ? undefined : this.#options.states.resume(requestState, this.#call, caller);
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
    if (ahead.kind === "refused") return { result: errorResult(messageOf(ahead.error), clock) };
    if (isHopeless)
      return { result: errorResult(`${toolName} asks «${ahead.asked[0]?.message}», and ${whyNoAnswer(path)}.`, clock) };
    return { result: this.#sendBack(ahead.asked, { asked: ahead.asked }) };
  }

  /** The second leg of a call that waits for an answer. */
  async #rejoin(calls: Calls, taskId: string): Promise<Begun> {
    const { engine } = calls;
    const caller = callerKey(this.#request.caller);
    this.#unpark(taskId);
    const task = await engine.get(caller, taskId);
    const responses = this.#request.inputResponses;
    const answers = openQuestions(task).filter(({ key }) => Object.hasOwn(responses, key));
    try {
      await engine.answer(
        caller,
        taskId,
        Object.fromEntries(answers.map(({ key }) => [key, toAnswer(responses[key])])),
      );
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      const open = openQuestions(await engine.get(caller, taskId));
      this.#park(engine, taskId);
      const result = this.#sendBack(
        open.map((question) => ({ ...question, message: `${question.message} (${error.message})` })),
        { taskId },
      );
      return { result };
    }
    return await calls.rejoin(taskId, this.#toRequest([]));
  }

  /**
   * A call that nobody comes back to must not wait for ever: its state is void after an hour. One that has ended
   * meanwhile is forgotten at once.
   */
  #park(engine: Engine, taskId: string): void {
    const { parked, clock } = this.#options;
    const over = new AbortController();
    const cancel = () => {
      unpark();
      this.#cancelTask(engine, taskId, "Nobody answered its question within an hour.");
    };
    const cancelTimer = clock.after(stateLivesMs, cancel);
    const unpark = () => {
      cancelTimer();
      over.abort(unparked);
      if (parked.get(taskId) === unpark) parked.delete(taskId);
    };
    this.#unpark(taskId);
    parked.set(taskId, unpark);
    engine.wait(callerKey(this.#request.caller), taskId, { signal: over.signal }).then(unpark, (error: unknown) => {
      // Pruned is as good as ended; where the store failed, the hour goes on.
      if (error instanceof RequestError) unpark();
    });
  }

  #cancelTask(engine: Engine, taskId: string, why: string): void {
    engine.cancel(callerKey(this.#request.caller), taskId, why).catch((error: unknown) => {
      // Gone is as good as cancelled.
      if (!(error instanceof RequestError))
        this.#options.log.warn("a task that nobody can find could not be cancelled", { error });
    });
  }

  #unpark(taskId: string): void {
    this.#options.parked.get(taskId)?.();
  }

  /** Sends the client away with questions and the state that leads back. */
  #sendBack(asked: readonly TaskQuestion[], to: Resumed): Result {
    const open = asked.filter(({ answer }) => answer === undefined);
    // The state that leads back is void before the question is.
    const until = this.#options.clock.now() + stateLivesMs;
    const limited = open.map((question) => ({ ...question, until: Math.min(question.until ?? until, until) }));
    const inputRequests = Object.fromEntries(limited.map((question) => [question.key, toInputRequest(question)]));
    return {
      resultType: "input_required",
      inputRequests,
      requestState: this.#options.states.sign(to, this.#call, this.#request.caller),
    } as Result;
  }

  #toRequest(answered: readonly TaskQuestion[]): CallRequest {
    const { meta, client, connection, exchange, outbound } = this.#request;
    const isModernHttp = this.#isModern && this.#request.door === "http";
    const key = meta["meanwhile/idempotencyKey"];
    const asked = this.#asked;
    const wish = wishOf(this.#options, client);
    return {
      entry: this.#entry,
      input: this.#input,
      caller: callerKey(this.#request.caller),
      origin: this.#origin,
      client: asked === undefined ? wish : { ...wish, asked },
      limit: limitOf(this.#options, this.#request),
      progressToken: this.#request.progressToken,
      isNew: meta["meanwhile/new"] === true,
      // Callers who cannot be told apart must not be given each other's runs.
      idempotencyKey: typeof key === "string" && key !== "" && isKnown(this.#request.caller) ? key : undefined,
      answered,
      whenAsked: wish.canTakeTask || !canElicit(client.capabilities) ? "handOut" : this.#isModern ? "park" : "elicit",
      whyNoAnswer: whyNoAnswer(this.#entry.path),
      watcher: this,
      delivered: async () => void (await outbound?.whenLeft(this.#request.id)),
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

  room(data: unknown): Promise<unknown> | undefined {
    const isFree = this.#place === undefined && this.#request.outbound?.backlog.isEmpty !== false;
    return isFree ? undefined : this.#myPlace.wait(data);
  }

  questions(task: Task, open: readonly TaskQuestion[]): void {
    for (const question of open) if (this.#engine !== undefined) void this.#elicit(this.#engine, task, question);
  }

  get #myPlace(): BacklogPlace {
    this.#place ??= new BacklogPlace(this.#request);
    return this.#place;
  }

  async #elicit(engine: Engine, task: Task, question: TaskQuestion): Promise<void> {
    this.#answered ??= new AbortController();
    const signal = AbortSignal.any([this.#request.signal, this.#answered.signal]);
    try {
      await answerUntilFits(engine, callerKey(this.#request.caller), task.taskId, question, (asked) =>
        elicit(asked, this.#request, signal),
      );
    } catch (error) {
      if (signal.aborted) return;
      this.#options.log.debug("a question could not be shown", { error });
      await engine
        .answer(callerKey(this.#request.caller), task.taskId, { [question.key]: { action: "cancel" } })
        .catch(() => undefined);
    }
  }

  #conclude(engine: Engine, ending: CallEnding): Result | Promise<Result> {
    if (ending.kind === "asked") {
      this.#park(engine, ending.task.taskId);
      return this.#sendBack(openQuestions(ending.task), { taskId: ending.task.taskId });
    }
    if (ending.kind === "deferred") return this.#defer(engine, ending);
    if (ending.kind === "left") return errorResult(this.#whereItWent(ending), this.#options.clock);
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
    await this.#makeRoom(ending, bytes);
    return this.#toResult(ending);
  }

  #toResult({ outcome, note, taskId }: EndedCall): Result {
    this.#note(outcome);
    if (outcome.ending === "failed" && outcome.rpc !== undefined)
      throw new ProtocolError(outcome.rpc.code, outcome.rpc.message, outcome.rpc.data);
    return toCallResult(outcome, this.#entry.command, {
      withLog: this.#withLog,
      progressToken: this.#request.progressToken,
      taskId,
      note:
        note === undefined
          ? undefined
          : { type: "info", text: note, timestamp: toTimestamp(this.#options.clock.now()) },
    });
  }

  #whereItWent({ taskId, isSafe }: CallEnding & { kind: "left" }): string {
    const { toolName } = this.#entry;
    // The tasks of callers who cannot be told apart are not in the terminal's list.
    const where = isKnown(this.#request.caller) ? `; get its result with: meanwhile tasks result ${taskId}` : ".";
    if (taskId !== undefined) return `The server is stopping. ${toolName} goes on as task ${taskId}${where}`;
    const advice = isSafe
      ? "so it was ended; call again"
      : "so its outcome will not be known here; check what it has done before you call again";
    return `The server is stopping, and ${toolName} could not be made a task, ${advice}.`;
  }

  /**
   * What finds no room on its way to the client waits on the disk; and what is on record stays there until the answer
   * has left.
   */
  async #makeRoom(ending: EndedCall, bytes: number): Promise<void> {
    const place = this.#myPlace;
    // What was taken back is answered by nothing, so there is nothing to wait for.
    const isUnanswered = this.#request.signal.aborted;
    if (!place.isKnown || isUnanswered || (!ending.isOnRecord && !isLarge(bytes))) return this.#finish(ending);
    if (isLarge(bytes) && !place.hasRoom(bytes)) await ending.setAside();
    if (isLarge(bytes)) await place.take(bytes);
    let isThere = false;
    void place.whenLeft().then((hasLeft) => {
      // On 2026-07-28 over HTTP a client that is lost has cancelled.
      ending.finish(isThere && (hasLeft || (this.#request.door === "http" && this.#isModern)));
    });
    await ending.recall();
    isThere = true;
  }

  /** The same where nothing is known of the way. */
  #finish(ending: EndedCall): void {
    const { door, connection, exchange } = this.#request;
    // A server that lives for one HTTP request is closed with its answer; and on 2026-07-28 a client that is lost there
    // has cancelled.
    const isGone = () => (door === "stdio" ? connection.closed.aborted : !this.#isModern && exchange?.aborted === true);
    if (ending.isOnRecord) this.#options.clock.after(0, () => ending.finish(!isGone()));
    else ending.finish(true);
  }

  #defer(engine: Engine, { as, task, note }: CallEnding & { kind: "deferred" }): Result {
    const { clock, plain, log } = this.#options;
    log.debug("call deferred", { tool: this.#entry.toolName, as, reason: task.reason });
    const caller = callerKey(this.#request.caller);
    const { progressToken, connection } = this.#request;
    if (progressToken !== undefined && note === undefined) this.#dropTokenWithClient(engine, task);
    if (as === "job") {
      const answer = toJobAnswer(task, clock, note);
      if (connection.jobs.has(task.taskId)) return answer;
      connection.jobs.add(task.taskId);
      const forget = () => void connection.jobs.delete(task.taskId);
      // After the answer, so that the client knows the job before it hears of it.
      clock.after(
        followGapMs,
        () =>
          void announceJob(task, {
            engine,
            clock,
            log,
            isDebug: this.#options.isDebug,
            connection,
            caller,
            progressToken,
          }).finally(forget),
      );
      return answer;
    }
    if (this.#isModern) this.#cancelUnlessDelivered(engine, task, note !== undefined);
    if (as === "task" && this.#isModern) {
      const _meta = note === undefined ? undefined : { "meanwhile/call": { note } };
      return {
        resultType: "task",
        ...toTask2026(task, clock.now(), canElicit(this.#request.client.capabilities)),
        ...(_meta && { _meta }),
      } as Result;
    }
    if (as === "task" && connection.tasks2025 !== undefined) {
      const tasks = connection.tasks2025;
      clock.after(followGapMs, () => void tasks.follow(task, { caller, progressToken }));
      return tasks.toCreated(task, note);
    }
    if (plain === undefined)
      throw new RequestError(
        "busy",
        `${this.#entry.toolName} takes longer than this client waits, and follow-up tools are switched off.`,
      );
    return plain.toHandle(task, { budget: budgetFor(this.#options, this.#request), note });
  }

  /** A token is its client's: on record, too, it goes with the client, while the task goes on. */
  #dropTokenWithClient(engine: Engine, task: Task): void {
    const { connection, exchange } = this.#request;
    const drop = () => {
      engine
        .dropToken(callerKey(this.#request.caller), task.taskId)
        .catch((error: unknown) =>
          this.#options.log.debug("the token of a client that is gone could not be dropped", { error }),
        );
    };
    const { closed } = connection;
    if (closed.aborted || exchange?.aborted === true) return void drop();
    // For as long as the task lives: a connection may have thousands of them, one after the other.
    engine.wait(callerKey(this.#request.caller), task.taskId, { signal: closed }).catch(() => closed.aborted && drop());
  }

  /** A task whose id nobody received could never be found again: on 2026-07-28 there is no list. */
  #cancelUnlessDelivered(engine: Engine, task: Task, isJoined: boolean): void {
    const { exchange } = this.#request;
    if (exchange === undefined || isJoined) return;
    const cancel = () => this.#cancelTask(engine, task.taskId, undelivered);
    if (exchange.aborted) cancel();
    else exchange.addEventListener("abort", cancel, { once: true });
  }

  get #origin(): Origin {
    return { door: "mcp", folder: this.#request.connection.folder };
  }

  get #withLog(): boolean {
    return this.#options.isDebug || this.#request.client.wantsLog;
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
    return isBug(error) ? new ProtocolError(internalErrorCode, "Internal error") : error;
  }

  /** One line a call for the operator; the stack of what a command threw, and never its arguments. */
  #note(outcome: Outcome): void {
    const facts = { tool: this.#entry.toolName, caller: this.#request.caller.kind, ms: outcome.durationMs };
    const isBug =
      outcome.ending === "failed" && outcome.error !== undefined && !(outcome.error instanceof CommandError);
    if (isBug) this.#options.log.warn("command failed", { ...facts, error: outcome.error });
    else this.#options.log.debug(`command ${outcome.ending}`, facts);
  }
}

function whyNoAnswer(path: readonly string[]): string {
  return `this client cannot show questions; run it in a terminal: meanwhile ${path.join(" ")}`;
}

/** Arguments whose references are replaced by what they lead to: in the other arguments, then in the call's context. */
function withReferences(input: unknown, context: unknown): unknown {
  if (typeof input !== "object" || input === null) return input;
  const values = Object.fromEntries(Object.entries(input).filter(([, value]) => !isReference(value)));
  const resolve = (name: string, value: unknown) => {
    if (!isReference(value)) return value;
    const resolved = resolveReference(value, values, (context ?? {}) as Record<string, unknown>);
    if (resolved.ok) return resolved.value;
    const why =
      resolved.error === "not_found"
        ? "is neither among the arguments nor in the context"
        : "is no reference; write $.field or $.a.b[0]";
    throw new InputError(`\`${name}\`: ${value.slice(0, 100)} ${why}.`);
  };
  return Object.fromEntries(Object.entries(input).map(([name, value]) => [name, resolve(name, value)]));
}

const mcpLevels = { debug: "debug", info: "info", warn: "warning", error: "error" } as const satisfies Record<
  CommandLogLevel,
  string
>;
