import type { Clock } from "../clock.ts";
import type { Answer } from "../command/context.ts";
import { BadCursor } from "../task/limits.ts";
import type {
  CallerScope,
  Claim,
  ClaimRequest,
  Created,
  CreateOptions,
  DurationCount,
  KeptTasks,
  ListFilter,
  TaskPage,
  TaskStore,
  UnclaimableRequest,
} from "../task/store.ts";
import {
  differingNames,
  type EnvironmentMarks,
  isExpired,
  isTerminal,
  type LimitedQuestion,
  type NewTask,
  openQuestions,
  type Task,
  type TaskOutcome,
  type TaskProgress,
  type TaskQuestion,
  type TaskRules,
} from "../task/task.ts";
import { apply, begin, type TaskEvent } from "../task/transitions.ts";
import { Listeners } from "./listeners.ts";
import { LocalClock } from "./local-clock.ts";
import {
  beyond,
  copyOf,
  equalTo,
  fullOf,
  keptAfter,
  type MemoryRow,
  queuedAfter,
  readyFor,
  toJson,
} from "./memory-rows.ts";
import { MemoryShared } from "./memory-shared.ts";
import { fromCursor, toCursor } from "./page-cursor.ts";

/** The reference: the pure rules on a Map. Nothing survives the process. */
export class MemoryStore implements TaskStore {
  readonly #rows = new Map<string, MemoryRow>();
  readonly #listeners = new Listeners();
  readonly #durations = new Map<string, DurationCount>();
  readonly #clock: Clock;
  readonly #time: LocalClock;
  #lastNumber = 0;
  readonly shared = new MemoryShared(() => this.now());

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#time = new LocalClock(clock);
  }

  now(): number {
    return this.#time.now();
  }

  async create(fresh: NewTask, options: CreateOptions): Promise<Created> {
    const now = this.now();
    const hasSameKey = ({ task }: MemoryRow) =>
      fresh.idempotencyKey !== undefined &&
      task.idempotencyKey === fresh.idempotencyKey &&
      task.caller === fresh.caller &&
      task.project === fresh.project;
    this.#remove((row) => hasSameKey(row) && isExpired(row.task, now));
    const own = [...this.#rows.values()].filter(({ task }) => task.caller === fresh.caller && !isExpired(task, now));
    const sameKey = own.find(hasSameKey);
    if (sameKey !== undefined) return { kind: "repeated", task: copyOf(sameKey) };
    const equal = options.joinsEqual && !fresh.isCall ? equalTo(fresh, this.#rows.values()) : undefined;
    if (equal !== undefined) return { kind: "joined", task: copyOf(equal) };
    const full = fresh.isCall ? undefined : fullOf(own, options);
    if (full !== undefined) return full;
    if (this.#rows.has(fresh.taskId)) throw new Error("This task id is taken.");
    const forgotten = options.keeps === undefined ? [] : this.#forgetFirst(options.keeps, fresh.caller);
    const row: MemoryRow = {
      number: ++this.#lastNumber,
      task: begin(
        { ...fresh, input: toJson(fresh.input ?? {}), questions: toJson(fresh.questions) },
        now,
        options.claim,
      ),
      steps: new Map(),
    };
    this.#rows.set(fresh.taskId, row);
    for (const taskId of [...forgotten, fresh.taskId]) this.#changed(taskId);
    return { kind: "created", task: copyOf(row) };
  }

  async get(scope: CallerScope, taskId: string): Promise<Task | undefined> {
    const row = this.#own(scope, taskId);
    return row === undefined ? undefined : copyOf(row);
  }

  async countOpenQuestions({ caller }: CallerScope, most: number): Promise<number> {
    const waiting = [...this.#rows.values()].filter(
      ({ task }) => task.caller === caller && task.status === "input_required",
    );
    return Math.min(
      most,
      waiting.reduce((open, { task }) => open + openQuestions(task).length, 0),
    );
  }

  async list(scope: CallerScope, filter: ListFilter): Promise<TaskPage> {
    const before = filter.cursor === undefined ? Number.POSITIVE_INFINITY : fromCursor(scope.caller, filter.cursor);
    if (before === undefined) throw new BadCursor();
    const now = this.now();
    const rows = [...this.#rows.values()]
      .filter(({ number, task }) => number < before && task.caller === scope.caller && !isExpired(task, now))
      .filter(
        ({ task }) =>
          (filter.project === undefined || task.project === filter.project) &&
          differingNames(task.environment, filter.environment).length === 0 &&
          (filter.statuses === undefined || filter.statuses.includes(task.status)) &&
          (filter.withCalls === true || !task.isCall || isTerminal(task)),
      )
      .sort((a, b) => b.number - a.number);
    const page = rows.slice(0, filter.limit);
    const last = page.at(-1);
    return {
      tasks: page.map(
        ({ task }) =>
          structuredClone({ ...task, input: undefined, ...(isTerminal(task) && { outcome: undefined }) }) as Task,
      ),
      nextCursor: rows.length > page.length && last !== undefined ? toCursor(scope.caller, last.number) : undefined,
    };
  }

  async findEqual(
    scope: CallerScope,
    project: string,
    digest: string,
    environment?: EnvironmentMarks,
  ): Promise<Task | undefined> {
    const equal = equalTo({ caller: scope.caller, project, digest, environment }, this.#rows.values());
    return equal === undefined ? undefined : copyOf(equal);
  }

  mayHaveLive(project: string, command: string): boolean {
    return [...this.#rows.values()].some(
      ({ task }) => task.project === project && task.command === command && !task.isCall && !isTerminal(task),
    );
  }

  async answer(scope: CallerScope, taskId: string, key: string, answer: Answer): Promise<boolean> {
    return this.#applyOwn(scope, taskId, { type: "answer", key, answer: toJson(answer) });
  }

  async cancel(scope: CallerScope, taskId: string, message: string): Promise<boolean> {
    return this.#applyOwn(scope, taskId, { type: "cancel", message });
  }

  async dropToken(scope: CallerScope, taskId: string): Promise<boolean> {
    const row = this.#rows.get(taskId);
    if (
      row === undefined ||
      row.task.caller !== scope.caller ||
      isTerminal(row.task) ||
      row.task.progressToken === undefined
    )
      return false;
    row.task = { ...row.task, progressToken: undefined };
    return true;
  }

  async dropKey(scope: CallerScope, taskId: string): Promise<boolean> {
    const row = this.#own(scope, taskId);
    if (row === undefined || !isTerminal(row.task) || row.task.idempotencyKey === undefined) return false;
    row.task = { ...row.task, idempotencyKey: undefined };
    return true;
  }

  async claim(request: ClaimRequest): Promise<Task | undefined> {
    const ready = readyFor(this.#rows.values(), request, this.now());
    if (ready === undefined) return undefined;
    return this.#apply(ready, { type: "claim", worker: request.worker, leaseMs: request.leaseMs })
      ? copyOf(ready)
      : undefined;
  }

  onWork(listener: () => void): () => void {
    return this.#listeners.addForWork(listener);
  }

  keepLeases(worker: string, leaseMs: number, everyMs: number): () => void {
    let cancel = () => {};
    const beat = () => {
      const lease = { worker, until: this.now() + leaseMs };
      for (const row of this.#heldBy(worker)) row.task = { ...row.task, lease } as Task;
      cancel = this.#clock.after(everyMs, beat);
    };
    beat();
    return () => cancel();
  }

  async report(claim: Claim, news: { progress?: TaskProgress; statusMessage?: string }): Promise<boolean> {
    const progress = news.progress === undefined ? undefined : toJson(news.progress);
    return this.#applyClaim(claim, { type: "report", fence: claim.fence, progress, statusMessage: news.statusMessage });
  }

  async ask(claim: Claim, question: LimitedQuestion): Promise<TaskQuestion | undefined> {
    const isAsked = this.#applyClaim(claim, { type: "ask", fence: claim.fence, question: toJson(question) });
    return isAsked ? structuredClone(this.#rows.get(claim.taskId)?.task.questions.at(-1)) : undefined;
  }

  async settle(claim: Claim, outcome: TaskOutcome): Promise<boolean> {
    return this.#applyClaim(claim, { type: "settle", fence: claim.fence, outcome: toJson(outcome) });
  }

  async retryLater(claim: Claim, delayMs: number, why: string): Promise<boolean> {
    return this.#applyClaim(claim, { type: "retry", fence: claim.fence, delayMs, why });
  }

  async giveBack(claim: Claim, why?: string): Promise<boolean> {
    return this.#applyClaim(claim, { type: "giveBack", fence: claim.fence, why });
  }

  async handOut(
    claim: Claim,
    terms: { readonly reason: string; readonly ttlMs: number; readonly rules: TaskRules },
  ): Promise<boolean> {
    const { reason, ttlMs, rules } = terms;
    return this.#applyClaim(claim, { type: "handOut", fence: claim.fence, reason, ttlMs, rules: toJson(rules) });
  }

  async forget(claim: Claim): Promise<boolean> {
    if (!this.#holds(claim) || this.#rows.get(claim.taskId)?.task.isCall !== true) return false;
    this.#rows.delete(claim.taskId);
    this.#changed(claim.taskId);
    return true;
  }

  async keepStep(claim: Claim, name: string, json: string, rules?: Pick<TaskRules, "isSafe">): Promise<boolean> {
    const row = this.#rows.get(claim.taskId);
    if (row === undefined || !this.#holds(claim)) return false;
    row.steps.set(name, json);
    if (rules !== undefined) row.task = { ...row.task, rules: { ...row.task.rules, isSafe: rules.isSafe } };
    return true;
  }

  async steps(taskId: string): Promise<ReadonlyMap<string, string>> {
    return new Map(this.#rows.get(taskId)?.steps);
  }

  async workers(): Promise<readonly string[]> {
    return [
      ...new Set(
        [...this.#rows.values()].flatMap(({ task }) =>
          isTerminal(task) || task.lease === undefined ? [] : [task.lease.worker],
        ),
      ),
    ];
  }

  async interrupt(worker?: string, expiredBefore?: number): Promise<readonly string[]> {
    const before = Math.min(this.now(), expiredBefore ?? Number.POSITIVE_INFINITY);
    const isOver = ({ task }: MemoryRow) => !isTerminal(task) && task.lease !== undefined && task.lease.until < before;
    const rows = worker === undefined ? [...this.#rows.values()].filter(isOver) : this.#heldBy(worker);
    return rows.filter((row) => this.#apply(row, { type: "interrupt" })).map((row) => row.task.taskId);
  }

  async lapse(): Promise<readonly string[]> {
    return [...this.#rows.values()].filter((row) => this.#apply(row, { type: "lapse" })).map((row) => row.task.taskId);
  }

  async markUnclaimable(request: UnclaimableRequest): Promise<readonly string[]> {
    const { project, environment, dueMs } = request;
    const running = new Set(
      [...this.#rows.values()].flatMap(({ task }) => (isHeld(task) ? [environmentKey(task)] : [])),
    );
    return [...this.#rows.values()]
      .filter(({ task }) => task.project === project && task.notBefore <= this.now() - dueMs)
      .filter(({ task }) => !running.has(environmentKey(task)))
      .filter((row) =>
        this.#apply(row, { type: "unclaimable", names: differingNames(row.task.environment, environment) }),
      )
      .map((row) => row.task.taskId);
  }

  async setEnvironment(scope: CallerScope, taskId: string, environment: EnvironmentMarks): Promise<boolean> {
    return this.#applyOwn(scope, taskId, { type: "setEnvironment", environment: toJson(environment) });
  }

  async sweep(): Promise<number> {
    const now = this.now();
    return this.#remove(({ task }) => isExpired(task, now)).length;
  }

  async prune(scope: CallerScope, taskId?: string): Promise<number> {
    const ids = this.#remove(
      ({ task }) => task.caller === scope.caller && isTerminal(task) && task.taskId === (taskId ?? task.taskId),
    );
    for (const id of ids) this.#changed(id);
    return ids.length;
  }

  async putRight(): Promise<number> {
    return await this.#time.putRight(async (byMs, now) => {
      for (const row of this.#rows.values())
        row.task = isTerminal(row.task) ? keptAfter(row.task, byMs, now) : queuedAfter(row.task, byMs, now);
      this.#listeners.tellAll();
    });
  }

  async recordDurations(counts: readonly DurationCount[]): Promise<void> {
    for (const item of counts) {
      const key = `${item.command} ${item.kind} ${item.bucket}`;
      this.#durations.set(key, { ...item, count: item.count + (this.#durations.get(key)?.count ?? 0) });
    }
  }

  async durations(command?: string): Promise<readonly DurationCount[]> {
    return [...this.#durations.values()].filter((item) => command === undefined || item.command === command);
  }

  onChange(listener: (taskId: string | undefined) => void, taskId?: string): () => void {
    return this.#listeners.add(listener, taskId);
  }

  watchClosely(): void {}

  async close(): Promise<void> {
    this.#listeners.clear();
  }

  #own(scope: CallerScope, taskId: string): MemoryRow | undefined {
    const row = this.#rows.get(taskId);
    return row === undefined || row.task.caller !== scope.caller || isExpired(row.task, this.now()) ? undefined : row;
  }

  #holds({ taskId, fence }: Claim): boolean {
    const task = this.#rows.get(taskId)?.task;
    return task !== undefined && !isTerminal(task) && task.lease !== undefined && task.fence === fence;
  }

  #heldBy(worker: string): MemoryRow[] {
    return [...this.#rows.values()].filter(({ task }) => !isTerminal(task) && task.lease?.worker === worker);
  }

  #applyOwn(scope: CallerScope, taskId: string, event: TaskEvent): boolean {
    const row = this.#own(scope, taskId);
    return row !== undefined && this.#apply(row, event);
  }

  #applyClaim(claim: Claim, event: TaskEvent): boolean {
    const row = this.#rows.get(claim.taskId);
    return row !== undefined && this.#apply(row, event);
  }

  #apply(row: MemoryRow, event: TaskEvent): boolean {
    const task = apply(row.task, event, this.now());
    if (task === undefined) return false;
    row.task = task;
    if (isTerminal(task)) row.steps.clear();
    this.#changed(task.taskId);
    return true;
  }

  #forgetFirst(keeps: KeptTasks, caller: string): string[] {
    const over = beyond(keeps, caller, this.#rows.values());
    return this.#remove((row) => over.has(row));
  }

  #remove(isOver: (row: MemoryRow) => boolean): string[] {
    const ids = [...this.#rows].filter(([, row]) => isOver(row)).map(([taskId]) => taskId);
    for (const taskId of ids) this.#rows.delete(taskId);
    return ids;
  }

  #changed(taskId: string): void {
    this.#listeners.tell(taskId, this.#rows.get(taskId)?.task.status === "queued");
  }
}

function isHeld(task: Task): boolean {
  return !isTerminal(task) && task.lease !== undefined;
}

/** Equal for tasks of one project and one environment. */
function environmentKey({ project, environment }: Task): string {
  return JSON.stringify([project, environment]);
}
