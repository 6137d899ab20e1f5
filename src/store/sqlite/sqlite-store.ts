import type { Clock } from "../../clock.ts";
import type { Answer } from "../../command/context.ts";
import { failpoint } from "../../failpoint.ts";
import type { Logger } from "../../log.ts";
import type {
  CallerScope,
  Claim,
  ClaimRequest,
  Created,
  CreateOptions,
  DurationCount,
  ListFilter,
  TaskPage,
  TaskStore,
  UnclaimableRequest,
} from "../../task/store.ts";
import {
  type EnvironmentMarks,
  type LimitedQuestion,
  lapsedQuestion,
  type NewTask,
  type Task,
  type TaskOutcome,
  type TaskProgress,
  type TaskQuestion,
  type TaskRules,
} from "../../task/task.ts";
import { begin, cancelledOutcome, lapsedMessage, unclaimablePrefix } from "../../task/transitions.ts";
import { Listeners } from "../listeners.ts";
import { type LiveCount, LiveCounts } from "../live-counts.ts";
import { LocalClock } from "../local-clock.ts";
import type { LocalOwner } from "../open.ts";
import { maxUnclaimable, unclaimable } from "../unclaimable.ts";
import { ChangesElsewhere } from "./changes-elsewhere.ts";
import { claimRow } from "./claim-row.ts";
import { type EndValues, endTask } from "./end-task.ts";
import { giveBackPages } from "./give-back-pages.ts";
import { prepareTask } from "./insert-task.ts";
import { insteadOf } from "./instead.ts";
import { interruptLost } from "./interrupt.ts";
import { keepStep } from "./keep-step.ts";
import { startLeaseKeeper } from "./lease-keeper.ts";
import { LiveCommands } from "./live-commands.ts";
import { readPage } from "./read-page.ts";
import { removeInPieces } from "./remove-in-pieces.ts";
import { fromEnvironment, fromExactKey, fromRules, type SqlValues, type TaskRow, toExactKey, toTask } from "./rows.ts";
import { SqliteShared } from "./sqlite-shared.ts";
import { TaskFile } from "./task-file.ts";

export { leaseThread } from "./lease-keeper.ts";

/** Tasks in one SQLite file, shared by as many processes as like. */
export class SqliteStore implements TaskStore {
  readonly #liveCounts = new LiveCounts();
  readonly #file: TaskFile;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #time: LocalClock;
  readonly #live: LiveCommands;
  readonly #listeners = new Listeners();
  readonly #elsewhere: ChangesElsewhere;
  /** What servers on this file share beside the tasks. */
  readonly shared: SqliteShared;

  /** For `owner` see `TaskFile`. */
  constructor(file: string, clock: Clock, log: Logger, owner?: () => LocalOwner) {
    this.#file = new TaskFile(file, clock, log, owner);
    this.#clock = clock;
    this.#log = log;
    this.#time = new LocalClock(clock);
    this.#live = new LiveCommands(this.#file);
    this.#elsewhere = new ChangesElsewhere(this.#file, clock, this.#listeners);
    this.shared = new SqliteShared({
      file: this.#file,
      now: () => this.now(),
      onChange: (listener) => this.onChange((taskId) => taskId === undefined && listener()),
      watchClosely: (isWaiting) => this.watchClosely(isWaiting),
    });
  }

  /** Opens the file, unless it is open. Throws when it cannot be used; the next one who needs it tries again. */
  open(): void {
    this.#file.open();
  }

  now(): number {
    return this.#time.now();
  }

  async create(fresh: NewTask, options: CreateOptions): Promise<Created> {
    const task = prepareTask(this.#file, begin(fresh, this.now(), options.claim));
    let forgotten: readonly string[] = [];
    let counted: LiveCount | undefined;
    const make = (): Created => {
      const instead = insteadOf(this.#file, fresh, options, {
        now: this.now(),
        counts: this.#liveCounts,
        onCount: (count) => (counted = count),
      });
      if (instead !== undefined) return instead;
      forgotten =
        options.keeps === undefined ? [] : this.#file.ids("forgetFirst", { caller: fresh.caller, ...options.keeps });
      return { kind: "created", task: task.insert() };
    };
    const write = () => this.#file.transaction(make);
    const created = await (fresh.isCall ? this.#file.quickly(write) : this.#file.durably(write));
    if (counted !== undefined) this.#liveCounts.note(fresh.caller, counted);
    if (created.kind === "created") {
      for (const taskId of forgotten) this.#changed(taskId);
      this.#changed(fresh.taskId, options.claim === undefined);
    }
    return created;
  }

  async get(scope: CallerScope, taskId: string): Promise<Task | undefined> {
    return await this.#file.read(() => this.#file.task("get", { caller: scope.caller, now: this.now(), taskId }));
  }

  async countOpenQuestions({ caller }: CallerScope, most: number): Promise<number> {
    return await this.#file.read(
      () => this.#file.first<{ open: number }>("countOpenQuestions", { caller, most })?.open ?? 0,
    );
  }

  async list(scope: CallerScope, filter: ListFilter): Promise<TaskPage> {
    return await this.#file.read(() => readPage(this.#file, scope.caller, filter, this.now()));
  }

  async findEqual(
    scope: CallerScope,
    project: string,
    digest: string,
    environment?: EnvironmentMarks,
  ): Promise<Task | undefined> {
    return await this.#file.read(() =>
      this.#file.task("findEqual", {
        caller: scope.caller,
        project,
        digest,
        environment: fromEnvironment(environment),
      }),
    );
  }

  mayHaveLive(project: string, command: string): boolean {
    try {
      return this.#live.has(project, command);
    } catch {
      // Whoever reads the tasks next hears what is wrong.
      return true;
    }
  }

  async answer(scope: CallerScope, taskId: string, key: string, answer: Answer): Promise<boolean> {
    const values = {
      taskId,
      caller: scope.caller,
      now: this.now(),
      key,
      answer: JSON.stringify(answer),
    };
    return await this.#told(taskId, () => this.#file.durably(() => this.#file.run("answer", values)), true);
  }

  async cancel(scope: CallerScope, taskId: string, message: string): Promise<boolean> {
    const outcome = JSON.stringify(cancelledOutcome(message, 0));
    return await this.#end("cancel", {
      taskId,
      caller: scope.caller,
      now: this.now(),
      statusMessage: message,
      outcome,
    });
  }

  async dropToken(scope: CallerScope, taskId: string): Promise<boolean> {
    return (await this.#file.quickly(() => this.#file.run("dropToken", { taskId, caller: scope.caller }))) > 0;
  }

  async dropKey(scope: CallerScope, taskId: string): Promise<boolean> {
    return (await this.#file.quickly(() => this.#file.run("dropKey", { taskId, caller: scope.caller }))) > 0;
  }

  async claim(request: ClaimRequest): Promise<Task | undefined> {
    const task = await claimRow(this.#file, request, this.now());
    if (task !== undefined) this.#changed(task.taskId);
    return task;
  }

  onWork(listener: () => void): () => void {
    this.#elsewhere.watch();
    return this.#listeners.addForWork(listener);
  }

  keepLeases(worker: string, leaseMs: number, everyMs: number): () => Promise<void> {
    return startLeaseKeeper({ file: this.#file.path, worker, leaseMs, everyMs }, this.#log);
  }

  async report(claim: Claim, news: { progress?: TaskProgress; statusMessage?: string }): Promise<boolean> {
    const progress = news.progress === undefined ? null : JSON.stringify(news.progress);
    const values = { ...claim, now: this.now(), progress, statusMessage: news.statusMessage ?? null };
    return await this.#told(claim.taskId, () => this.#file.quickly(() => this.#file.run("report", values)));
  }

  async ask(claim: Claim, question: LimitedQuestion): Promise<TaskQuestion | undefined> {
    const now = this.now();
    const { limitMs, ...words } = question;
    const until = limitMs === undefined ? {} : { until: now + limitMs };
    const values = { ...claim, now, question: JSON.stringify({ ...toExactKey(words), ...until, askedAt: now }) };
    const asked = await this.#file.durably(() => this.#file.first<{ question: string }>("ask", values));
    if (asked === undefined) return undefined;
    this.#changed(claim.taskId);
    return fromExactKey(JSON.parse(asked.question) as TaskQuestion);
  }

  async settle(claim: Claim, outcome: TaskOutcome): Promise<boolean> {
    const statusMessage = outcome.ending === "completed" ? null : outcome.message;
    const values = { now: this.now(), status: outcome.ending, outcome: JSON.stringify(outcome), statusMessage };
    return await this.#end("settle", { ...claim, ...values });
  }

  async retryLater(claim: Claim, delayMs: number, why: string): Promise<boolean> {
    const now = this.now();
    const values = { ...claim, notBefore: now + delayMs, why, now };
    return await this.#told(claim.taskId, () => this.#file.quickly(() => this.#file.run("retryLater", values)), true);
  }

  async giveBack(claim: Claim, why?: string): Promise<boolean> {
    const values = { ...claim, now: this.now(), why: why ?? null };
    return await this.#told(claim.taskId, () => this.#file.quickly(() => this.#file.run("giveBack", values)), true);
  }

  async handOut(
    claim: Claim,
    terms: { readonly reason: string; readonly ttlMs: number; readonly rules: TaskRules },
  ): Promise<boolean> {
    const values = { ...claim, reason: terms.reason, ttlMs: terms.ttlMs, ...fromRules(terms.rules), now: this.now() };
    return await this.#told(claim.taskId, () => this.#file.durably(() => this.#file.run("handOut", values)));
  }

  async forget(claim: Claim): Promise<boolean> {
    return await this.#told(claim.taskId, () => this.#file.quickly(() => this.#file.run("forget", { ...claim })));
  }

  async keepStep(claim: Claim, name: string, json: string, rules?: Pick<TaskRules, "isSafe">): Promise<boolean> {
    return await this.#file.durably(() => keepStep(this.#file, claim, { name, value: json }, rules));
  }

  async steps(taskId: string): Promise<ReadonlyMap<string, string>> {
    const rows = await this.#file.read(() => this.#file.all<{ name: string; value: string }>("steps", { taskId }));
    return new Map(rows.map(({ name, value }) => [name, value]));
  }

  async workers(): Promise<readonly string[]> {
    return await this.#file.read(() => this.#file.all<{ worker: string }>("workers", {}).map(({ worker }) => worker));
  }

  async interrupt(worker?: string, expiredBefore?: number): Promise<readonly string[]> {
    const now = this.now();
    const lost = worker === undefined ? { expiredBefore: Math.min(now, expiredBefore ?? now) } : { worker };
    const ids = await this.#file.durably(() => this.#file.transaction(() => interruptLost(this.#file, lost, now)));
    for (const id of ids) this.#changed(id, true);
    return ids;
  }

  async lapse(): Promise<readonly string[]> {
    const now = this.now();
    const found = await this.#file.read(() => this.#file.all<TaskRow>("findLapsed", { now }).map(toTask));
    const ended: string[] = [];
    for (const task of found) {
      const question = lapsedQuestion(task, now);
      const statusMessage = question === undefined ? "" : lapsedMessage(question);
      const outcome = JSON.stringify(cancelledOutcome(statusMessage, 0));
      if (await this.#end("lapse", { taskId: task.taskId, now, statusMessage, outcome })) ended.push(task.taskId);
    }
    return ended;
  }

  async markUnclaimable({ project, environment, dueMs }: UnclaimableRequest): Promise<readonly string[]> {
    const now = this.now();
    const which = { project, environment: fromEnvironment(environment), dueBefore: now - dueMs, now };
    const values = { ...which, prefix: unclaimablePrefix, count: maxUnclaimable };
    const found = await this.#file.read(() => this.#file.all<TaskRow>("findUnclaimable", values).map(toTask));
    const changed: string[] = [];
    for (const task of found) {
      const after = unclaimable(task, environment, now);
      if (after === undefined) continue;
      const { taskId, version } = task;
      const written = { taskId, version, now, statusMessage: after.statusMessage };
      const isDone =
        after.outcome === undefined
          ? await this.#told(taskId, () => this.#file.quickly(() => this.#file.run("markUnclaimable", written)))
          : await this.#end("giveUpUnclaimable", { ...written, outcome: JSON.stringify(after.outcome) });
      if (isDone) changed.push(taskId);
    }
    return changed;
  }

  async setEnvironment(scope: CallerScope, taskId: string, environment: EnvironmentMarks): Promise<boolean> {
    const values = { taskId, caller: scope.caller, environment: fromEnvironment(environment), now: this.now() };
    const write = () => this.#file.durably(() => this.#file.run("setEnvironment", values));
    return await this.#told(taskId, write, true);
  }

  async sweep(): Promise<number> {
    const { length } = await this.#remove("sweep", { now: this.now() });
    await giveBackPages(this.#file, this.#clock);
    return length;
  }

  async prune({ caller }: CallerScope, taskId?: string): Promise<number> {
    const ids = await (taskId === undefined
      ? this.#remove("prune", { caller })
      : this.#file.quickly(() => this.#file.ids("pruneOne", { caller, taskId })));
    for (const id of ids) this.#changed(id);
    return ids.length;
  }

  async putRight(): Promise<number> {
    return await this.#time.putRight(async (byMs, now) => {
      const verbs = byMs > 0 ? (["prolong"] as const) : (["shorten", "hasten"] as const);
      const values = { byMs: Math.round(byMs), now };
      await this.#file.quickly(() =>
        this.#file.transaction(() => verbs.forEach((verb) => void this.#file.run(verb, values))),
      );
      this.#listeners.tellAll();
    });
  }

  async recordDurations(counts: readonly DurationCount[]): Promise<void> {
    if (counts.length === 0) return;
    await this.#file.quickly(() =>
      this.#file.transaction(() => {
        for (const count of counts) this.#file.run("recordDuration", { ...count });
      }),
    );
  }

  async durations(command?: string): Promise<readonly DurationCount[]> {
    const read = () =>
      command === undefined ? this.#file.all("durations", {}) : this.#file.all("durationsOf", { command });
    return await this.#file.read(() => read() as DurationCount[]);
  }

  onChange(listener: (taskId: string | undefined) => void, taskId?: string): () => void {
    this.#elsewhere.watch();
    return this.#listeners.add(listener, taskId);
  }

  watchClosely(isWaiting: boolean): void {
    this.#elsewhere.watchClosely(isWaiting);
  }

  async close(): Promise<void> {
    this.#elsewhere.stop();
    this.#listeners.clear();
    await this.#file.close();
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

  /** A task's end, its outcome and the end of its steps: all or nothing. */
  #end(name: "settle" | "cancel" | "lapse" | "giveUpUnclaimable", values: EndValues): Promise<boolean> {
    const write = () => this.#file.transaction(() => endTask(this.#file, name, values));
    return this.#told(values.taskId, () => this.#file.durably(write));
  }

  #remove(name: "sweep" | "prune", values: SqlValues): Promise<string[]> {
    return removeInPieces({ file: this.#file, clock: this.#clock, name, values });
  }

  #changed(taskId: string, isWork = false): void {
    this.#listeners.tell(taskId, isWork);
  }
}
