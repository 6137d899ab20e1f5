import { Worker as Thread } from "node:worker_threads";
import type Database from "better-sqlite3";
import { type Clock, sleep } from "../../clock.ts";
import type { Answer } from "../../command/context.ts";
import { isStoreError, RuntimeError } from "../../errors.ts";
import { failpoint } from "../../failpoint.ts";
import type { Logger } from "../../log.ts";
import type { Dispatcher } from "../../task/dispatcher.ts";
import { BadCursor } from "../../task/limits.ts";
import type {
  Claim,
  ClaimRequest,
  Created,
  CreateOptions,
  DurationCount,
  ListFilter,
  TaskPage,
  CallerScope,
  TaskStore,
} from "../../task/store.ts";
import {
  type EnvironmentMarks,
  type LimitedQuestion,
  lapsedQuestion,
  maxCrashes,
  type NewTask,
  type Task,
  type TaskOutcome,
  type TaskProgress,
  type TaskQuestion,
  type TaskRules,
} from "../../task/task.ts";
import {
  begin,
  cancelledOutcome,
  interruptedCallOutcome,
  interruptedMessage,
  interruptedOutcome,
  lapsedMessage,
} from "../../task/transitions.ts";
import { fromCursor, toCursor } from "../cursor.ts";
import { Listeners } from "../listeners.ts";
import { isBusy, openConnection, toRuntimeError } from "./connection.ts";
import { type OpenFile, openFiles, refuseReplaced } from "./replaced.ts";
import { fromEnvironment, fromRules, fromShares, fromTask, type TaskRow, toTask, type SqlValues } from "./rows.ts";
import { statements } from "./statements.ts";

/** Other processes' changes are looked for this often while someone waits, and this often otherwise. */
const closeWatchMs = 50;
const idleWatchMs = 1_000;
/** Watched tasks whose versions are read in one turn of the event loop. */
const looksATurn = 500;
/** How long a write waits for other writers before it gives up. */
const maxBusyMs = 15_000;
/** How often the log is told of the same trouble. */
const tellMs = 60_000;

/** Tasks in one SQLite file, shared by as many processes as like. Store and dispatcher in one. */
export class SqliteStore implements TaskStore, Dispatcher {
  readonly #file: string;
  readonly #clock: Clock;
  readonly #log: Logger;
  #opened: { readonly db: Database.Database; readonly files: readonly OpenFile[] } | undefined;
  readonly #prepared = new Map<string, Database.Statement<[SqlValues], unknown>>();
  readonly #listeners = new Listeners();
  #isFull = true;
  #dataVersion = 0;
  /** The commands of which tasks are live, as of this version of the file; forgotten with every write of our own. */
  #live:
    | {
        readonly dataVersion: number;
        readonly commands: ReadonlyMap<string, ReadonlySet<string>>;
        isOfThisMoment: boolean;
      }
    | undefined;
  #waiting = 0;
  #cancelWatch: (() => void) | undefined;
  #isClosed = false;
  #lastTold: { readonly message: string; readonly at: number } | undefined;

  constructor(file: string, clock: Clock, log: Logger) {
    this.#file = file;
    this.#clock = clock;
    this.#log = log;
  }

  /** Opens the file, unless it is open. Throws when it cannot be used; the next one who needs it tries again. */
  open(): void {
    if (this.#opened !== undefined) return;
    if (this.#isClosed) throw new RuntimeError("STORE_UNAVAILABLE", `The task database ${this.#file} is closed.`);
    const db = openConnection(this.#file);
    this.#opened = { db, files: openFiles(this.#file) };
    this.#isFull = true;
    this.#dataVersion = this.#readDataVersion();
  }

  get #db(): Database.Database {
    this.open();
    return (this.#opened as { readonly db: Database.Database }).db;
  }

  async create(fresh: NewTask, options: CreateOptions): Promise<Created> {
    const values = fromTask(begin(fresh, options.claim));
    let forgotten: readonly string[] = [];
    const make = (): Created => {
      const instead = this.#instead(fresh, options);
      if (instead !== undefined) return instead;
      forgotten =
        options.keeps === undefined ? [] : this.#ids("forgetFirst", { caller: fresh.caller, ...options.keeps });
      return { kind: "created", task: this.#row("insert", values) as Task };
    };
    const write = () => this.#transaction(make);
    const created = await (fresh.isCall ? this.#quickly(write) : this.#durably(write));
    if (created.kind === "created") {
      for (const taskId of forgotten) this.#changed(taskId);
      this.#changed(fresh.taskId, options.claim === undefined);
    }
    return created;
  }

  async get(scope: CallerScope, taskId: string): Promise<Task | undefined> {
    return await this.#attempt(() => this.#row("get", { ...scope, taskId }));
  }

  async list(scope: CallerScope, filter: ListFilter): Promise<TaskPage> {
    const before = filter.cursor === undefined ? Number.MAX_SAFE_INTEGER : fromCursor(scope.caller, filter.cursor);
    if (before === undefined) throw new BadCursor();
    const values = {
      ...scope,
      before,
      project: filter.project ?? null,
      environment: fromEnvironment(filter.environment),
      statuses: filter.statuses === undefined ? null : JSON.stringify(filter.statuses),
      withCalls: filter.withCalls ? 1 : 0,
      limit: filter.limit + 1,
    };
    const rows = await this.#attempt(() => this.#prepare("list").all(values) as TaskRow[]);
    const page = rows.slice(0, filter.limit);
    const last = page.at(-1);
    return {
      tasks: page.map(toTask),
      nextCursor: rows.length > page.length && last !== undefined ? toCursor(scope.caller, last.number) : undefined,
    };
  }

  async findEqual(
    scope: CallerScope,
    project: string,
    digest: string,
    environment?: EnvironmentMarks,
  ): Promise<Task | undefined> {
    return await this.#attempt(() =>
      this.#row("findEqual", { caller: scope.caller, project, digest, environment: fromEnvironment(environment) }),
    );
  }

  mayHaveLive(project: string, command: string): boolean {
    try {
      return this.#liveCommands().get(project)?.has(command) === true;
    } catch {
      // Whoever reads the tasks next hears what is wrong.
      return true;
    }
  }

  #liveCommands(): ReadonlyMap<string, ReadonlySet<string>> {
    // What came in one piece was sent before any of it is answered: for all of it one look is late enough.
    if (this.#live?.isOfThisMoment === true) return this.#live.commands;
    const dataVersion = this.#readDataVersion();
    if (this.#live?.dataVersion !== dataVersion) {
      const rows = this.#prepare("liveCommands").all({}) as { project: string; command: string }[];
      const commands = new Map(
        [...Map.groupBy(rows, (row) => row.project)].map(([project, own]) => [
          project,
          new Set(own.map((row) => row.command)),
        ]),
      );
      this.#live = { dataVersion, commands, isOfThisMoment: true };
    }
    const live = this.#live;
    live.isOfThisMoment = true;
    queueMicrotask(() => {
      live.isOfThisMoment = false;
    });
    return live.commands;
  }

  async answer(scope: CallerScope, taskId: string, key: string, answer: Answer): Promise<boolean> {
    const values = { taskId, caller: scope.caller, now: scope.now, key, answer: JSON.stringify(answer) };
    return await this.#told(taskId, () => this.#durably(() => this.#run("answer", values)), true);
  }

  async cancel(scope: CallerScope, taskId: string, message: string): Promise<boolean> {
    const outcome = JSON.stringify(cancelledOutcome(message, 0));
    return await this.#end("cancel", { taskId, caller: scope.caller, now: scope.now, statusMessage: message, outcome });
  }

  async dropToken(scope: CallerScope, taskId: string): Promise<boolean> {
    return (await this.#quickly(() => this.#run("dropToken", { taskId, caller: scope.caller }))) > 0;
  }

  async claim(request: ClaimRequest): Promise<Task | undefined> {
    const { project, worker, leaseMs, now, taskId, except = [], shares } = request;
    const facts = {
      project,
      worker,
      leaseMs,
      now,
      environment: fromEnvironment(request.environment),
      except: JSON.stringify(except),
    };
    const task = await this.#quickly(() =>
      taskId === undefined
        ? this.#row("claim", { ...facts, ...fromShares(shares) })
        : this.#row("claimNamed", { ...facts, taskId }),
    );
    if (task !== undefined) this.#changed(task.taskId);
    return task;
  }

  next(request: ClaimRequest): Promise<Task | undefined> {
    return this.claim(request);
  }

  onWork(listener: () => void): () => void {
    return this.#watch(this.#listeners.addForWork(listener));
  }

  keepLeases(worker: string, leaseMs: number, everyMs: number): () => Promise<void> {
    const entry = import.meta.url.endsWith(".ts") ? "./heartbeat.ts" : "./heartbeat.js";
    const thread = new Thread(new URL(entry, import.meta.url), {
      workerData: { file: this.#file, worker, leaseMs, everyMs },
      stdout: true,
    });
    thread.unref();
    thread.on("error", () => undefined);
    const exited = new Promise<void>((resolve) => thread.once("exit", () => resolve()));
    // Asked, not ended: a thread that is cut off while it loads a native module takes the whole process with it.
    return async () => {
      thread.ref();
      thread.postMessage("stop");
      await exited;
    };
  }

  async report(claim: Claim, news: { progress?: TaskProgress; statusMessage?: string }, now: number): Promise<boolean> {
    const progress = news.progress === undefined ? null : JSON.stringify(news.progress);
    const values = { ...claim, now, progress, statusMessage: news.statusMessage ?? null };
    return await this.#told(claim.taskId, () => this.#quickly(() => this.#run("report", values)));
  }

  async ask(claim: Claim, question: LimitedQuestion, now: number): Promise<TaskQuestion | undefined> {
    const values = { ...claim, now, question: JSON.stringify({ ...question, askedAt: now }) };
    const asked = await this.#durably(() => this.#first<{ question: string }>("ask", values));
    if (asked === undefined) return undefined;
    this.#changed(claim.taskId);
    return JSON.parse(asked.question) as TaskQuestion;
  }

  async settle(claim: Claim, outcome: TaskOutcome, now: number): Promise<boolean> {
    const statusMessage = outcome.ending === "completed" ? null : outcome.message;
    return await this.#end("settle", {
      ...claim,
      now,
      status: outcome.ending,
      outcome: JSON.stringify(outcome),
      statusMessage,
    });
  }

  async retryLater(claim: Claim, notBefore: number, why: string, now: number): Promise<boolean> {
    return await this.#told(
      claim.taskId,
      () => this.#quickly(() => this.#run("retryLater", { ...claim, notBefore, why, now })),
      true,
    );
  }

  async giveBack(claim: Claim, now: number, why?: string): Promise<boolean> {
    return await this.#told(
      claim.taskId,
      () => this.#quickly(() => this.#run("giveBack", { ...claim, now, why: why ?? null })),
      true,
    );
  }

  async handOut(
    claim: Claim,
    terms: { readonly reason: string; readonly ttlMs: number; readonly rules: TaskRules },
    now: number,
  ): Promise<boolean> {
    const values = { ...claim, reason: terms.reason, ttlMs: terms.ttlMs, ...fromRules(terms.rules), now };
    return await this.#told(claim.taskId, () => this.#durably(() => this.#run("handOut", values)));
  }

  async forget(claim: Claim): Promise<boolean> {
    return await this.#told(claim.taskId, () => this.#quickly(() => this.#run("forget", { ...claim })));
  }

  async keepStep(claim: Claim, name: string, json: string): Promise<boolean> {
    return (await this.#durably(() => this.#run("keepStep", { ...claim, name, value: json }))) > 0;
  }

  async steps(taskId: string): Promise<ReadonlyMap<string, string>> {
    const rows = await this.#attempt(() => this.#prepare("steps").all({ taskId }) as { name: string; value: string }[]);
    return new Map(rows.map(({ name, value }) => [name, value]));
  }

  async workers(): Promise<readonly string[]> {
    return await this.#attempt(() =>
      (this.#prepare("workers").all({}) as { worker: string }[]).map(({ worker }) => worker),
    );
  }

  async interrupt(
    lost: { readonly before: number } | { readonly worker: string },
    now: number,
  ): Promise<readonly string[]> {
    const which = "worker" in lost ? { worker: lost.worker, before: -1 } : { worker: "", before: lost.before };
    const crashed = interruptedOutcome(true, maxCrashes);
    const unknown = interruptedOutcome(false, 1);
    const call = interruptedCallOutcome();
    const ids = await this.#durably(() =>
      this.#transaction(() => {
        const again = this.#ids("requeueLost", {
          ...which,
          now,
          maxCrashes,
          once: interruptedMessage(1),
          often: interruptedMessage(2).replace("2", "#"),
        });
        const ended = this.#ids("giveUpLost", {
          ...which,
          now,
          call: JSON.stringify(call),
          crashed: JSON.stringify(crashed),
          unknown: JSON.stringify(unknown),
          callMessage: messageOf(call),
          crashedMessage: messageOf(crashed),
          unknownMessage: messageOf(unknown),
        });
        for (const taskId of ended) this.#run("dropSteps", { taskId });
        return [...again, ...ended];
      }),
    );
    for (const id of ids) this.#changed(id, true);
    return ids;
  }

  async lapse(now: number): Promise<readonly string[]> {
    const found = await this.#attempt(() => (this.#prepare("findLapsed").all({ now }) as TaskRow[]).map(toTask));
    const ended: string[] = [];
    for (const task of found) {
      const question = lapsedQuestion(task, now);
      const statusMessage = question === undefined ? "" : lapsedMessage(question);
      const outcome = JSON.stringify(cancelledOutcome(statusMessage, 0));
      if (await this.#end("lapse", { taskId: task.taskId, now, statusMessage, outcome })) ended.push(task.taskId);
    }
    return ended;
  }

  async sweep(now: number): Promise<number> {
    return await this.#quickly(() => this.#run("sweep", { now }));
  }

  async prune(scope: CallerScope, taskId?: string): Promise<number> {
    const ids = await this.#quickly(() => this.#ids("prune", { caller: scope.caller, taskId: taskId ?? null }));
    for (const id of ids) this.#changed(id);
    return ids.length;
  }

  async clockJumped(byMs: number, now: number): Promise<void> {
    const verbs = byMs > 0 ? (["prolong"] as const) : (["shorten", "hasten"] as const);
    await this.#quickly(() =>
      this.#transaction(() => verbs.forEach((verb) => void this.#run(verb, { byMs: Math.round(byMs), now }))),
    );
    this.#listeners.tellAll();
  }

  async recordDurations(counts: readonly DurationCount[]): Promise<void> {
    if (counts.length === 0) return;
    await this.#quickly(() =>
      this.#transaction(() => {
        for (const count of counts) this.#run("recordDuration", { ...count });
      }),
    );
  }

  async durations(command?: string): Promise<readonly DurationCount[]> {
    const read = () =>
      command === undefined ? this.#prepare("durations").all({}) : this.#prepare("durationsOf").all({ command });
    return await this.#attempt(() => read() as DurationCount[]);
  }

  onChange(listener: (taskId: string | undefined) => void, taskId?: string): () => void {
    return this.#watch(this.#listeners.add(listener, taskId));
  }

  watchClosely(isWaiting: boolean): void {
    this.#waiting += isWaiting ? 1 : -1;
    if (isWaiting && this.#waiting === 1) this.#scheduleWatch();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelWatch?.();
    this.#listeners.clear();
    this.#opened?.db.close();
  }

  /** Commits that must survive a power cut: on disk before they are acknowledged. */
  #durably<T>(action: () => T): Promise<T> {
    return this.#write(true, action);
  }

  /** Commits that survive a crash of the process; a power cut may undo them, and nobody was told otherwise. */
  #quickly<T>(action: () => T): Promise<T> {
    return this.#write(false, action);
  }

  #write<T>(isFull: boolean, action: () => T): Promise<T> {
    return this.#attempt(() => {
      this.open();
      refuseReplaced(this.#opened?.files ?? []);
      this.#synchronize(isFull);
      this.#live = undefined;
      return action();
    });
  }

  #synchronize(isFull: boolean): void {
    if (isFull === this.#isFull) return;
    this.#db.pragma(isFull ? "synchronous = FULL" : "synchronous = NORMAL");
    this.#isFull = isFull;
  }

  /** Tries again while somebody else is writing, without blocking the event loop meanwhile. */
  async #attempt<T>(action: () => T): Promise<T> {
    const startedAt = this.#clock.monotonic();
    for (let pauseMs = 1; ; pauseMs = Math.min(pauseMs * 2, 10)) {
      try {
        return action();
      } catch (error) {
        if (!isBusy(error) || this.#clock.monotonic() - startedAt > maxBusyMs) {
          const trouble = toRuntimeError(error, this.#file);
          if (isStoreError(trouble)) this.#tell(trouble);
          throw trouble;
        }
        await sleep(this.#clock, pauseMs);
      }
    }
  }

  /** The operator's word on it, with the path: once a minute, however many want something of the file meanwhile. */
  #tell({ message }: RuntimeError): void {
    const at = this.#clock.monotonic();
    if (this.#isClosed || (this.#lastTold?.message === message && at - this.#lastTold.at < tellMs)) return;
    this.#lastTold = { message, at };
    this.#log.error(message);
  }

  #transaction<T>(action: () => T): T {
    return this.#db.transaction(action).immediate();
  }

  #prepare(name: keyof typeof statements): Database.Statement<[SqlValues], unknown> {
    const known = this.#prepared.get(name);
    if (known !== undefined) return known;
    const prepared = this.#db.prepare<[SqlValues], unknown>(statements[name]);
    this.#prepared.set(name, prepared);
    return prepared;
  }

  #run(name: keyof typeof statements, values: SqlValues): number {
    return this.#prepare(name).run(values).changes;
  }

  /** What there is instead of another task. A journalled call is nobody's company, and takes nobody's place. */
  #instead(fresh: NewTask, options: CreateOptions): Created | undefined {
    const { caller, project, digest, idempotencyKey } = fresh;
    if (idempotencyKey !== undefined) {
      this.#run("sweepKey", { caller, project, idempotencyKey, now: fresh.createdAt });
      const repeated = this.#row("findByKey", { caller, project, idempotencyKey });
      if (repeated !== undefined) return { kind: "repeated", task: repeated };
    }
    if (fresh.isCall) return undefined;
    const equal = options.joinsEqual
      ? this.#row("findEqual", { caller, project, digest, environment: fromEnvironment(fresh.environment) })
      : undefined;
    if (equal !== undefined) return { kind: "joined", task: equal };
    const live = this.#first<{ live: number }>("countLive", { caller, maxLive: options.maxLive })?.live ?? 0;
    if (live >= options.maxLive) return { kind: "full", live };
    const { maxWaiting = Number.MAX_SAFE_INTEGER } = options;
    const waiting = this.#first<{ live: number }>("countWaiting", { caller, maxWaiting })?.live ?? 0;
    const oldest = waiting >= maxWaiting ? this.#row("oldestWaiting", { caller }) : undefined;
    return oldest === undefined ? undefined : { kind: "full", live: waiting, oldest };
  }

  /**
   * One transition; true when it was ours. Listeners hear of it once it is committed; after some, somebody may have
   * work.
   */
  async #told(taskId: string, write: () => Promise<number>, isWork = false): Promise<boolean> {
    const isDone = (await write()) > 0;
    if (isDone) {
      failpoint("before-notify");
      this.#changed(taskId, isWork);
    }
    return isDone;
  }

  /** The end of a task and of its steps: both or neither. */
  #end(name: "settle" | "cancel" | "lapse", values: SqlValues & { taskId: string }): Promise<boolean> {
    const write = () => {
      const changes = this.#run(name, values);
      if (changes > 0) this.#run("dropSteps", { taskId: values.taskId });
      return changes;
    };
    return this.#told(values.taskId, () => this.#durably(() => this.#transaction(write)));
  }

  #row(name: keyof typeof statements, values: SqlValues): Task | undefined {
    const row = this.#first<TaskRow>(name, values);
    return row === undefined ? undefined : toTask(row);
  }

  /** Not `.get()`: that stops at the first row, and when the commit that follows fails, it does not say so. */
  #first<T>(name: keyof typeof statements, values: SqlValues): T | undefined {
    return (this.#prepare(name).all(values) as T[])[0];
  }

  #ids(name: keyof typeof statements, values: SqlValues): string[] {
    return (this.#prepare(name).all(values) as { task_id: string }[]).map((row) => row.task_id);
  }

  #changed(taskId: string, isWork = false): void {
    this.#listeners.tell(taskId, isWork);
  }

  /** Somebody listens from now on, so other processes are watched too. */
  #watch(stopListening: () => void): () => void {
    if (this.#cancelWatch === undefined) this.#scheduleWatch();
    return stopListening;
  }

  #readDataVersion(): number {
    return this.#first<{ data_version: number }>("dataVersion", {})?.data_version ?? 0;
  }

  #scheduleWatch(): void {
    this.#cancelWatch?.();
    if (this.#isClosed) return;
    this.#cancelWatch = this.#clock.after(this.#waiting > 0 ? closeWatchMs : idleWatchMs, () => {
      this.#lookElsewhere();
      if (this.#listeners.isEmpty) this.#cancelWatch = undefined;
      else this.#scheduleWatch();
    });
  }

  /** SQLite counts what other connections commit; a new number means that anything may have changed. */
  #lookElsewhere(): void {
    let version = this.#dataVersion;
    if (this.#opened === undefined) return;
    try {
      version = this.#readDataVersion();
    } catch {
      // Called by a timer, where an error would end the process. The next look, or the next read, meets the same
      // trouble.
    }
    if (version === this.#dataVersion) return;
    this.#dataVersion = version;
    this.#listeners.tellElsewhere();
    this.#lookAtWatched(this.#listeners.watched);
  }

  /**
   * Tells who listens to one task when it is that one, a few in each turn of the event loop. Must not throw: it is
   * called by timers.
   */
  #lookAtWatched(taskIds: string[]): void {
    if (this.#isClosed || taskIds.length === 0) return;
    const some = taskIds.splice(0, looksATurn);
    let rows: { task_id: string; version: number }[] = [];
    try {
      rows = this.#prepare("versions").all({ taskIds: JSON.stringify(some) }) as typeof rows;
    } catch {
      // Then all of these are told, and meet the trouble themselves.
    }
    this.#listeners.tellChanged(some, new Map(rows.map(({ task_id, version }) => [task_id, version])));
    if (taskIds.length > 0) setImmediate(() => this.#lookAtWatched(taskIds));
  }
}

function messageOf(outcome: TaskOutcome): string {
  return outcome.ending === "completed" ? "" : outcome.message;
}
