import type { Clock } from "../clock.ts";
import { anonymousKey, whose } from "../command/caller.ts";
import type { CatalogEntry } from "../command/catalog.ts";
import { type Answer, type Origin, unknownOrigin } from "../command/context.ts";
import { isForm } from "../command/foreign-question.ts";
import { describeIssue } from "../command/issues.ts";
import { refuseInput } from "../command/run.ts";
import { type JsonSchema, jsonSchema, validate } from "../command/schema.ts";
import { CommandError, InputError, isStoreError, RequestError } from "../errors.ts";
import { failpoint } from "../failpoint.ts";
import { createId } from "../ids.ts";
import type { Logger } from "../log.ts";
import { digestOf } from "./digest.ts";
import { type Dispatcher, ticketOf, ticketOfLost } from "./dispatcher.ts";
import { EndedTasks } from "./ended.ts";
import { type WatchedStore, waitForTask } from "./feed.ts";
import type { History } from "./history.ts";
import { InterruptedTasks } from "./interrupted-tasks.ts";
import { Leaving } from "./leaving.ts";
import { checkInputSize, checkTtl, defaultLimits, keptOf, type Limits, maxPageSize, taskLimitOf } from "./limits.ts";
import { isRepeatable, rulesOf } from "./retry.ts";
import { RoomQueue } from "./room-queue.ts";
import type { SharedState } from "./shared-state.ts";
import { lastProgress } from "./status-line.ts";
import type { CallerScope, CreateOptions, FullStore, ListFilter, TaskPage, TaskStore } from "./store.ts";
import {
  type EnvironmentMarks,
  isTerminal,
  lapsedQuestion,
  type NewTask,
  openQuestions,
  type Task,
  type TaskQuestion,
} from "./task.ts";
import { hasNeverStarted, isInterrupted } from "./transitions.ts";

export interface EngineOptions {
  readonly store: TaskStore;
  /** What all servers on the store have in common. */
  readonly shared?: Pick<SharedState, "useOnce"> | undefined;
  /** Who is told of tasks that nobody runs yet. Default: nobody, where the store itself tells them. */
  readonly dispatcher?: Pick<Dispatcher, "offer">;
  readonly history: History;
  readonly clock: Clock;
  readonly log: Logger;
  /** Tasks of this project are ours to run, and a caller sees no others. */
  readonly project: string;
  /** Default false. True: a caller sees their tasks of all projects. */
  readonly seesAllProjects?: boolean;
  /** What this process has of the variables that the project's code reads. */
  readonly environment?: () => EnvironmentMarks;
  readonly limits?: Limits;
  /** How long a result is kept whose client does not say, in milliseconds. Default: 24 hours. */
  readonly taskTtlMs?: number | undefined;
  /** True for a worker on this machine whose process is certainly gone. Default: for none. */
  readonly isDead?: (worker: string) => boolean;
  /** Shared with the worker. */
  readonly ended?: EndedTasks;
  readonly leaving?: Leaving;
}

export interface CreateRequest {
  readonly entry: CatalogEntry;
  readonly input: unknown;
  readonly caller: string;
  /** Where it was asked for. Default: a client of which nothing is known. */
  readonly origin?: Origin;
  /** What the command is called in sentences; the tool's name by default. */
  readonly name?: string;
  /** Why this call becomes a task; shown by `tasks show`. */
  readonly reason: string;
  readonly ttlMs?: unknown;
  readonly idempotencyKey?: string;
  /** Start another run even if an equal one is live. */
  readonly isNew?: boolean;
  readonly progressToken?: string | number | undefined;
  /** The client expects a task and nothing else: bad arguments are how that ends, then. */
  readonly isUnchecked?: boolean;
  /** Told its id before there is such a task: from then on it may be run. */
  readonly onId?: ((taskId: string) => void) | undefined;
  /** Questions that were asked and answered before there was a task. */
  readonly answered?: readonly TaskQuestion[];
}

export interface CreatedTask {
  readonly task: Task;
  /** True when the task was there already: an equal call that is live, or the same idempotency key. */
  readonly isJoined: boolean;
  /** True when that was for its idempotency key. */
  readonly isRepeated: boolean;
  /** An equal call before this one that was interrupted: the caller is told of it. */
  readonly interrupted: Task | undefined;
}

/** What there is of earlier equal calls. */
export interface EqualTasks {
  readonly live: Task | undefined;
  readonly interrupted: Task | undefined;
}

/** Makes, finds, answers and cancels tasks. Knows no protocol and no database. */
export class Engine {
  readonly #options: EngineOptions;
  readonly #ended: EndedTasks;
  /** The store as those see it who wait for a task; one object, so that they share what they hear. */
  readonly #watched: WatchedStore;
  readonly #leaving: Leaving;
  readonly #roomQueue: RoomQueue;
  readonly #interrupted: InterruptedTasks;

  constructor(options: EngineOptions) {
    this.#options = options;
    const { store, ended = new EndedTasks(), leaving = new Leaving() } = options;
    this.#ended = ended;
    this.#leaving = leaving;
    this.#roomQueue = new RoomQueue(options.clock);
    this.#interrupted = new InterruptedTasks({ ...options, interruptDead: () => this.#interruptDead() });
    this.#watched = {
      get: (scope, taskId) => this.#read(scope, taskId),
      onChange: (listener, taskId) => {
        const stops = [
          store.onChange(listener, taskId),
          ...(taskId === undefined ? [] : [ended.onKeep(taskId, listener)]),
        ];
        return () => {
          for (const stop of stops) stop();
        };
      },
      watchClosely: (isWaiting) => store.watchClosely(isWaiting),
    };
  }

  /** What time it is for tasks: by the store's clock, by which their times were written. */
  now(): number {
    return this.#options.store.now();
  }

  /** Aborted when this process is about to end: nobody is to be kept waiting any longer. */
  get leaving(): AbortSignal {
    return this.#leaving.signal;
  }

  /** Calls back then, unless it was so before. */
  onLeaving(listener: () => void): () => void {
    return this.#leaving.onBegin(listener);
  }

  /** Makes a call durable. When this resolves the task is on disk; when it throws, nothing was changed. */
  async create(request: CreateRequest, claim?: { worker: string; leaseMs: number }): Promise<CreatedTask> {
    const { store, limits = defaultLimits } = this.#options;
    const { entry, input, caller, origin = unknownOrigin } = request;
    const ttlMs = checkTtl(request.ttlMs, caller, this.#options.taskTtlMs);
    checkInputSize(input, caller);
    const refusal =
      request.isUnchecked === true
        ? undefined
        : await refuseInput(entry.command, input, request.name ?? entry.toolName);
    if (refusal !== undefined) throw new InputError(refusal);
    const { command, toolName } = entry;
    const digest = digestOf(toolName, input ?? {}, origin);
    const fresh = await this.#toNewTask(request, digest, ttlMs);
    request.onId?.(fresh.taskId);
    const options: CreateOptions = {
      joinsEqual: this.joinsEqual(request),
      maxLive: limits[taskLimitOf(caller)],
      keeps: keptOf(caller),
      ...(claim !== undefined && { claim }),
    };
    const create = () => store.create(fresh, options);
    let first = await create();
    // A task of a dead worker is not live; an equal call does not join it.
    if (first.kind !== "created" && first.kind !== "full" && (await this.#interruptIfDead(first.task)))
      first = await create();
    let interrupted: Task | undefined;
    if (
      first.kind === "repeated" &&
      first.task.digest === digest &&
      isInterrupted(first.task) &&
      (isRepeatable(command) || hasNeverStarted(first.task))
    ) {
      interrupted = first.task;
      await store.dropKey({ caller }, interrupted.taskId);
      first = await create();
    }
    const created = first.kind === "full" ? await this.#roomQueue.create(caller, create, this.leaving) : first;
    failpoint("after-insert");
    if (created.kind === "full") throw new TooManyTasks(created, caller);
    if (created.kind === "repeated" && created.task.digest !== digest)
      throw new CommandError(
        "This idempotency key belongs to another call, of another tool or with other arguments; use a fresh one.",
      );
    if (created.kind === "created" && claim === undefined) this.#options.dispatcher?.offer(ticketOf(created.task));
    failpoint("before-ack");
    const isJoined = created.kind !== "created";
    if (interrupted !== undefined) this.nameInterrupted(interrupted);
    else if (!isJoined && this.joinsEqual(request)) interrupted = await this.#findInterrupted(caller, digest);
    return { task: created.task, isJoined, isRepeated: created.kind === "repeated", interrupted };
  }

  async #toNewTask(request: CreateRequest, digest: string, ttlMs: number): Promise<NewTask> {
    const { history, project, environment } = this.#options;
    const { entry, input, caller, origin = unknownOrigin } = request;
    const { command, toolName } = entry;
    const { estimateMs, isEndless, isProven } = await history.look(toolName, command, input, origin);
    return {
      taskId: createId(),
      caller,
      project,
      command: toolName,
      input: input ?? {},
      origin,
      digest,
      idempotencyKey: request.idempotencyKey,
      reason: request.reason,
      ttlMs,
      estimateMs,
      isEndless,
      isProven,
      rules: rulesOf(command),
      isCall: false,
      progressToken: request.progressToken,
      questions: request.answered ?? [],
      environment: environment?.(),
    };
  }

  /** Equal calls that change something are one run, where callers can be told apart. */
  joinsEqual({ entry: { command }, caller, isNew }: Pick<CreateRequest, "entry" | "caller" | "isNew">): boolean {
    return command.dedupe && command.effects !== "read" && caller !== anonymousKey && isNew !== true;
  }

  /** False when no equal call that is live or was interrupted can be known; finding that out reads no tasks. */
  mayHaveEqual(request: Pick<CreateRequest, "entry" | "caller" | "isNew">): boolean {
    const { store, project } = this.#options;
    if (!this.joinsEqual(request)) return false;
    return this.#interrupted.mayHave(request.caller) || store.mayHaveLive(project, request.entry.toolName);
  }

  /**
   * The live task that an equal call of this caller has started; else one that was interrupted, if the caller was not yet
   * told of it. Without the store nobody can know of one, and a call that needs no task is not refused for that.
   */
  async findEqual(request: Pick<CreateRequest, "entry" | "input" | "caller" | "origin">): Promise<EqualTasks> {
    const { entry, input, caller, origin = unknownOrigin } = request;
    const { store, project, environment } = this.#options;
    const digest = digestOf(entry.toolName, input ?? {}, origin);
    const find = () => store.findEqual({ caller }, project, digest, environment?.());
    try {
      const found = store.mayHaveLive(project, entry.toolName) ? await find() : undefined;
      const live = found !== undefined && (await this.#interruptIfDead(found)) ? await find() : found;
      return { live, interrupted: live === undefined ? await this.#findInterrupted(caller, digest) : undefined };
    } catch (error) {
      if (isStoreError(error)) return { live: undefined, interrupted: undefined };
      throw error;
    }
  }

  /** The caller is told of this interrupted task. */
  nameInterrupted(task: Task): void {
    this.#interrupted
      .name(task)
      .catch((error: unknown) => this.#options.log.debug("an interrupted task may be named again", { error }));
  }

  /** An interrupted equal call that was not known of when the run `ownId` began. Reads no tasks more than once a second. */
  async findLateInterrupted(
    request: Pick<CreateRequest, "entry" | "input" | "caller" | "origin" | "isNew">,
    ownId: string | undefined,
  ): Promise<Task | undefined> {
    const { entry, input, caller, origin = unknownOrigin } = request;
    if (!this.joinsEqual(request) || !this.#interrupted.mayHave(caller)) return undefined;
    return await this.#findInterrupted(caller, digestOf(entry.toolName, input ?? {}, origin), ownId);
  }

  async #findInterrupted(caller: string, digest: string, ownId?: string): Promise<Task | undefined> {
    try {
      return await this.#interrupted.take(caller, digest, ownId);
    } catch (error) {
      if (isStoreError(error)) return undefined;
      throw error;
    }
  }

  /** Interrupts the tasks of a dead worker that the sweeper has not found yet. True if it did so. */
  async #interruptIfDead(task: Task): Promise<boolean> {
    const worker = isTerminal(task) ? undefined : task.lease?.worker;
    if (worker === undefined || this.#options.isDead?.(worker) !== true) return false;
    await this.#interruptWorker(worker);
    this.#interrupted.refresh(task.caller);
    return true;
  }

  /** The same for all dead workers, whose calls are not found as the live tasks of equal calls. */
  async #interruptDead(): Promise<void> {
    const { store, isDead } = this.#options;
    if (isDead === undefined) return;
    for (const worker of await store.workers()) if (isDead(worker)) await this.#interruptWorker(worker);
  }

  async #interruptWorker(worker: string): Promise<void> {
    const { store, dispatcher } = this.#options;
    for (const taskId of await store.interrupt(worker)) dispatcher?.offer(ticketOfLost(taskId));
  }

  /** Whether there are tasks of a caller that a worker of this project and environment runs, now or later. */
  async hasOwn(caller: string, filter: Pick<ListFilter, "statuses" | "withCalls">): Promise<boolean> {
    const { project, environment } = this.#options;
    return (
      (
        await this.list(caller, {
          ...filter,
          project,
          ...(environment !== undefined && { environment: environment() }),
          limit: 1,
        })
      ).tasks.length > 0
    );
  }

  async get(caller: string, taskId: unknown): Promise<Task> {
    const task = typeof taskId === "string" ? await this.#read({ caller }, taskId) : undefined;
    if (task === undefined) throw new UnknownTask();
    return task;
  }

  async list(caller: string, filter: Partial<ListFilter> = {}): Promise<TaskPage> {
    const limit = filter.limit ?? maxPageSize;
    if (!Number.isInteger(limit) || limit < 1 || limit > maxPageSize)
      throw new RequestError("params", `\`limit\` must be a whole number from 1 to ${maxPageSize}.`);
    return await this.#options.store.list({ caller }, { ...this.#visible, ...filter, limit });
  }

  /** What a caller sees of all their tasks. */
  get #visible(): Pick<ListFilter, "project"> {
    const { project, seesAllProjects = false } = this.#options;
    return seesAllProjects ? {} : { project };
  }

  /**
   * Answers open questions; keys that are not open are passed over, as a late or repeated answer must be. True when one
   * was taken.
   */
  async answer(caller: string, taskId: string, answers: Readonly<Record<string, Answer>>): Promise<boolean> {
    const { store } = this.#options;
    let task = await this.get(caller, taskId);
    if (lapsedQuestion(task, store.now()) !== undefined) {
      // Its time is over, whether the sweeper has looked or not.
      await store.lapse();
      task = await this.get(caller, taskId);
      if (isTerminal(task))
        throw new RequestError(
          "params",
          "The time to answer is over, so the task has ended; run it again to be asked again.",
        );
    }
    let isTaken = false;
    for (const question of openQuestions(task)) {
      const { key, schema } = question;
      const answer = Object.hasOwn(answers, key) ? answers[key] : undefined;
      if (answer?.action === "accept" && isForm(question)) await refuseAnswer(schema, answer.content);
      if (answer !== undefined && (await store.answer({ caller }, taskId, key, answer))) isTaken = true;
    }
    // Where nobody holds it, its last answer has put it in the queue.
    if (isTaken && !isTerminal(task) && task.lease === undefined) this.#options.dispatcher?.offer(ticketOf(task));
    return isTaken;
  }

  /**
   * Cancels a task, durably, before it answers. False when it had ended already. The task ends before its command stops,
   * so what the command says last is not part of its result: its last progress is.
   */
  async cancel(caller: string, taskId: string, message = "Cancelled by the caller."): Promise<boolean> {
    const task = await this.get(caller, taskId);
    return await this.#options.store.cancel({ caller }, taskId, `${message}${lastProgress(task)}`);
  }

  /** Makes a queued task due now, for workers with this environment. False if it is not queued. */
  async retry(caller: string, taskId: string, environment: EnvironmentMarks): Promise<boolean> {
    const isDone = await this.#options.store.setEnvironment({ caller }, taskId, environment);
    const task = await this.get(caller, taskId);
    if (isDone) this.#options.dispatcher?.offer(ticketOf(task));
    return isDone;
  }

  /** The client that followed a task by its token is gone. */
  async dropToken(caller: string, taskId: string): Promise<void> {
    await this.#options.store.dropToken({ caller }, taskId);
  }

  /** Follows a task to its end, or until `until` holds. */
  async wait(
    caller: string,
    taskId: string,
    options: { until?: (task: Task) => boolean; signal?: AbortSignal; onTask?: (task: Task) => void } = {},
  ): Promise<Task> {
    const task = await waitForTask(this.#watched, { caller }, taskId, { until: isTerminal, ...options });
    if (task === undefined) throw new UnknownTask();
    return task;
  }

  /** Removes the ended tasks of a caller, or one of them. */
  async prune(caller: string, taskId?: string): Promise<number> {
    return await this.#options.store.prune({ caller }, taskId);
  }

  /**
   * As the store has it; what has ended is told from memory when the store cannot be asked, or could not be told of it.
   */
  async #read(scope: CallerScope, taskId: string): Promise<Task | undefined> {
    const task = await this.#readAny(scope, taskId);
    const { project = task?.project } = this.#visible;
    return task?.project === project ? task : undefined;
  }

  async #readAny(scope: CallerScope, taskId: string): Promise<Task | undefined> {
    const { store } = this.#options;
    const remembered = () => this.#ended.get(scope, taskId, store.now());
    try {
      const task = await store.get(scope, taskId);
      if (task === undefined) return undefined;
      if (!isTerminal(task)) return remembered() ?? task;
      this.#ended.keep(task);
      return task;
    } catch (error) {
      const known = isStoreError(error) ? remembered() : undefined;
      if (known === undefined) throw error;
      return known;
    }
  }
}

/** An answer that does not fit is refused while the question is still open; stored, it would fail the run. */
async function refuseAnswer(schema: JsonSchema, content: Readonly<Record<string, unknown>>): Promise<void> {
  const checked = await validate(jsonSchema(schema), content);
  if (!checked.ok)
    throw new RequestError("params", `The answer does not fit: ${checked.issues.map(describeIssue).join("; ")}.`);
}

/** The caller has as many live tasks as there may be. */
export class TooManyTasks extends CommandError {
  constructor({ live }: FullStore, caller: string) {
    super(
      `There are ${live} live tasks of ${whose(caller)} already, the most there may be (setting \`limits.${taskLimitOf(caller)}\`); wait for one to end, or cancel one.`,
    );
  }
}

/** Unknown, expired, foreign and malformed: one sentence for all, so that it tells nothing. */
export class UnknownTask extends RequestError {
  constructor() {
    super("params", "There is no such task; it may have expired.");
  }
}
