import type { Clock } from "../../clock.ts";
import type { Answer } from "../../command/context.ts";
import { failpoint } from "../../failpoint.ts";
import type { Logger } from "../../log.ts";
import type { SharedState } from "../../task/shared-state.ts";
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
import type {
  EnvironmentMarks,
  LimitedQuestion,
  NewTask,
  Task,
  TaskOutcome,
  TaskProgress,
  TaskQuestion,
  TaskRules,
} from "../../task/task.ts";
import { unclaimablePrefix } from "../../task/transitions.ts";
import { Listeners } from "../listeners.ts";
import { maxUnclaimable, unclaimable } from "../unclaimable.ts";
import { parseAddress } from "./address.ts";
import { answerQuestion, askQuestion, cancelledHead, lapseQuestions } from "./change-task.ts";
import { claimTask } from "./claim-task.ts";
import { Creating } from "./create-task.ts";
import { Database } from "./database.ts";
import type { Gathered } from "./gathered.ts";
import { interruptedWords } from "./interrupted-words.ts";
import { startLeaseKeeper } from "./keep-leases.ts";
import { readPage } from "./list-tasks.ts";
import { NodeNews } from "./node-news.ts";
import { PostgresShared } from "./postgres-shared.ts";
import type { StatementName } from "./postgres-statements.ts";
import { Reading } from "./read-tasks.ts";
import { recordDurations } from "./record-durations.ts";
import { gatherSettlements, type Settlement } from "./settle-tasks.ts";
import { fromEnvironment, fromRules, type PostgresRow, type PostgresValues, toTask } from "./task-rows.ts";
import { UnsettledClaims } from "./unsettled-claims.ts";

export { leaseThread } from "./keep-leases.ts";

/** Rows that go at once, so that nobody waits long for those that are locked meanwhile. */
const removedAtOnce = 250;
/** A worker that has not been heard of for so long is none any more. */
const forgottenMs = 86_400_000;

/** Tasks in one PostgreSQL schema, shared by as many nodes as like, by its clock. */
export class PostgresStore implements TaskStore {
  readonly #database: Database;
  readonly #log: Logger;
  readonly #listeners = new Listeners();
  readonly #elsewhere: NodeNews;
  readonly #unsettled: UnsettledClaims;
  readonly #creating: Creating;
  readonly #settling: Gathered<Settlement, boolean>;
  readonly #reading: Reading;
  readonly shared: SharedState;
  /** Where many callers wait, the next ones to be looked at come after this one. */
  #lastServed = "";

  constructor(url: string, clock: Clock, log: Logger, besidePool?: number) {
    this.#log = log;
    this.#database = new Database(parseAddress(url, besidePool), clock, log);
    this.#elsewhere = new NodeNews(this.#database, clock, this.#listeners);
    this.#unsettled = new UnsettledClaims(this.#database, clock);
    this.#creating = new Creating(this.#database, this.#unsettled);
    this.#settling = gatherSettlements(this.#database);
    this.#reading = new Reading(this.#database);
    this.shared = new PostgresShared({
      database: this.#database,
      tell: (name) => this.#elsewhere.tell(name, false),
      onChange: (listener, name) => this.onChange(listener, name),
      watchClosely: (isWaiting) => this.watchClosely(isWaiting),
    });
  }

  /** Connects, unless it has. Rejects when the database cannot be used; the next one who needs it tries again. */
  async open(): Promise<void> {
    await this.#database.open();
    await this.#elsewhere.listen();
  }

  now(): number {
    return this.#database.time.now();
  }

  async create(fresh: NewTask, options: CreateOptions): Promise<Created> {
    // Nobody joins what is about to be removed.
    await this.#settleClaims();
    const { created, forgotten } = await this.#creating.create(fresh, options);
    if (created.kind === "created") {
      for (const taskId of forgotten) this.#changed(taskId);
      this.#changed(fresh.taskId, options.claim === undefined);
    }
    return created;
  }

  get(scope: CallerScope, taskId: string): Promise<Task | undefined> {
    return this.#reading.get(scope, taskId);
  }

  async list(scope: CallerScope, filter: ListFilter): Promise<TaskPage> {
    return await readPage(this.#database, scope.caller, filter);
  }

  findEqual(
    scope: CallerScope,
    project: string,
    digest: string,
    environment?: EnvironmentMarks,
  ): Promise<Task | undefined> {
    const values = { caller: scope.caller, project, digest, environment: fromEnvironment(environment) };
    return this.#find("findEqual", values);
  }

  /** What other nodes have made in this instant is never known without asking. */
  mayHaveLive(): boolean {
    return true;
  }

  async answer(scope: CallerScope, taskId: string, key: string, answer: Answer): Promise<boolean> {
    return this.#told(taskId, await answerQuestion(this.#database, scope, { taskId, key, answer }), true);
  }

  async cancel(scope: CallerScope, taskId: string, message: string): Promise<boolean> {
    const values = { taskId, caller: scope.caller, statusMessage: message, outcomeHead: cancelledHead(message) };
    return this.#told(taskId, await this.#write("cancel", values, "wasCancelled"));
  }

  async dropToken(scope: CallerScope, taskId: string): Promise<boolean> {
    return await this.#write("dropToken", { taskId, caller: scope.caller });
  }

  async dropKey(scope: CallerScope, taskId: string): Promise<boolean> {
    return await this.#write("dropKey", { taskId, caller: scope.caller });
  }

  async claim(request: ClaimRequest): Promise<Task | undefined> {
    await this.#settleClaims();
    const task = await claimTask(this.#database, this.#unsettled, request, this.#lastServed);
    if (task === undefined) return undefined;
    this.#lastServed = task.caller;
    this.#changed(task.taskId);
    return task;
  }

  onWork(listener: () => void): () => void {
    this.#elsewhere.watch();
    return this.#listeners.addForWork(listener);
  }

  keepLeases(worker: string, leaseMs: number, everyMs: number): () => Promise<void> {
    const { access } = this.#database.address;
    return startLeaseKeeper({ access, text: this.#database.textOf("renew"), worker, leaseMs, everyMs }, this.#log);
  }

  async report(claim: Claim, news: { progress?: TaskProgress; statusMessage?: string }): Promise<boolean> {
    const progress = news.progress === undefined ? null : JSON.stringify(news.progress);
    const values = { ...claim, progress, statusMessage: news.statusMessage ?? null };
    return this.#told(claim.taskId, await this.#write("report", values));
  }

  async ask(claim: Claim, question: LimitedQuestion): Promise<TaskQuestion | undefined> {
    const asked = await askQuestion(this.#database, claim, question);
    if (asked !== undefined) this.#changed(claim.taskId);
    return asked;
  }

  async countOpenQuestions({ caller }: CallerScope, most: number): Promise<number> {
    const [row] = await this.#database.insist((query) =>
      query<{ open: number }>("countOpenQuestions", { caller, most }),
    );
    return row?.open ?? 0;
  }

  async settle(claim: Claim, outcome: TaskOutcome): Promise<boolean> {
    const statusMessage = outcome.ending === "completed" ? null : outcome.message;
    const json = JSON.stringify(outcome);
    const { taskId: task_id, fence } = claim;
    const settlement = { task_id, fence, status: outcome.ending, outcome: json, status_message: statusMessage };
    const isSettled = await this.#database.untilOver(() => this.#settling.add(settlement, json.length));
    return this.#told(claim.taskId, isSettled);
  }

  async retryLater(claim: Claim, delayMs: number, why: string): Promise<boolean> {
    const values = { ...claim, delayMs: Math.round(delayMs), why };
    return this.#told(claim.taskId, await this.#write("retryLater", values, "wasReleased"), true);
  }

  async giveBack(claim: Claim, why?: string): Promise<boolean> {
    return this.#told(claim.taskId, await this.#write("giveBack", { ...claim, why: why ?? null }, "wasReleased"), true);
  }

  async handOut(
    claim: Claim,
    terms: { readonly reason: string; readonly ttlMs: number; readonly rules: TaskRules },
  ): Promise<boolean> {
    const values = { ...claim, reason: terms.reason, ttlMs: terms.ttlMs, ...fromRules(terms.rules) };
    return this.#told(claim.taskId, await this.#write("handOut", values, "wasHandedOut"));
  }

  async forget(claim: Claim): Promise<boolean> {
    const isForgotten = await this.#database.patiently(
      async (query, isAgain) =>
        (await query("forget", { ...claim })).length > 0 ||
        (isAgain && (await query("isThere", { ...claim })).length === 0),
    );
    return this.#told(claim.taskId, isForgotten);
  }

  async keepStep(claim: Claim, name: string, json: string, rules?: Pick<TaskRules, "isSafe">): Promise<boolean> {
    return await this.#write("keepStep", { ...claim, name, value: json, isSafe: rules?.isSafe ?? null });
  }

  async steps(taskId: string): Promise<ReadonlyMap<string, string>> {
    const rows = await this.#database.query<{ name: string; value: string }>("steps", { taskId });
    return new Map(rows.map(({ name, value }) => [name, value]));
  }

  async workers(): Promise<readonly string[]> {
    return await this.#holders("workers");
  }

  async interrupt(worker?: string, expiredBefore?: number): Promise<readonly string[]> {
    await this.#settleClaims();
    const before = { expiredBefore: expiredBefore ?? null };
    const workers = worker === undefined ? await this.#holders("overdueWorkers", before) : [worker];
    if (workers.length === 0) return [];
    const isOverdue = worker === undefined;
    const ids = await this.#ids("interrupt", { ...interruptedWords(), ...before, workers, isOverdue });
    for (const id of ids) this.#changed(id, true);
    return ids;
  }

  async lapse(): Promise<readonly string[]> {
    const ids = await lapseQuestions(this.#database);
    for (const id of ids) this.#changed(id);
    return ids;
  }

  async markUnclaimable({ project, environment, dueMs }: UnclaimableRequest): Promise<readonly string[]> {
    const which = { project, environment: fromEnvironment(environment), dueMs: Math.round(dueMs) };
    const values = { ...which, prefix: unclaimablePrefix, count: maxUnclaimable };
    const changed: string[] = [];
    for (const row of await this.#database.query<PostgresRow & { readonly now: number }>("findUnclaimable", values)) {
      const after = unclaimable(toTask(row), environment, row.now);
      if (after === undefined) continue;
      const written = { taskId: row.task_id, version: row.version, statusMessage: after.statusMessage };
      const isDone =
        after.outcome === undefined
          ? await this.#write("markUnclaimable", written)
          : await this.#write("giveUpUnclaimable", { ...written, outcome: JSON.stringify(after.outcome) });
      if (this.#told(row.task_id, isDone)) changed.push(row.task_id);
    }
    return changed;
  }

  async setEnvironment(scope: CallerScope, taskId: string, environment: EnvironmentMarks): Promise<boolean> {
    const values = { taskId, caller: scope.caller, environment: fromEnvironment(environment) };
    return this.#told(taskId, await this.#write("setEnvironment", values), true);
  }

  async sweep(): Promise<number> {
    await this.#database.query("forgetWorkers", { ageMs: forgottenMs });
    return (await this.#removeInPieces("sweep", {})).length;
  }

  async prune({ caller }: CallerScope, taskId?: string): Promise<number> {
    const ids = await (taskId === undefined
      ? this.#removeInPieces("prune", { caller })
      : this.#ids("pruneOne", { caller, taskId }));
    for (const id of ids) this.#changed(id);
    return ids.length;
  }

  /** The clock is the database's, and that one's operator looks after it. */
  async putRight(): Promise<number> {
    return 0;
  }

  async recordDurations(counts: readonly DurationCount[]): Promise<void> {
    if (counts.length > 0) await recordDurations(this.#database, counts);
  }

  async durations(command?: string): Promise<readonly DurationCount[]> {
    return await this.#database.query<DurationCount>("durations", { command: command ?? null });
  }

  onChange(listener: (taskId: string | undefined) => void, taskId?: string): () => void {
    this.#elsewhere.watch();
    return this.#listeners.add(listener, taskId);
  }

  watchClosely(isWaiting: boolean): void {
    this.#elsewhere.watchClosely(isWaiting);
  }

  async close(): Promise<void> {
    this.#listeners.clear();
    await this.#elsewhere.stop();
    await this.#database.close();
  }

  /** Whoever has room, here or elsewhere, may have what this node has claimed without hearing of it. */
  async #settleClaims(): Promise<void> {
    const { released, forgotten } = await this.#unsettled.settle();
    for (const taskId of released) this.#changed(taskId, true);
    for (const taskId of forgotten) this.#changed(taskId);
  }

  async #find(name: StatementName, values: PostgresValues): Promise<Task | undefined> {
    const [row] = await this.#database.query<PostgresRow>(name, values);
    return row === undefined ? undefined : toTask(row);
  }

  async #holders(name: "workers" | "overdueWorkers", values: PostgresValues = {}): Promise<string[]> {
    return (await this.#database.query<{ worker: string }>(name, values)).map(({ worker }) => worker);
  }

  async #ids(name: StatementName, values: PostgresValues): Promise<string[]> {
    return (await this.#database.query<{ task_id: string }>(name, values)).map((row) => row.task_id);
  }

  /**
   * One transition; true when it was ours. After a try of which nobody knows what came of it, `wasDone` looks whether
   * that was it.
   */
  async #write(name: StatementName, values: PostgresValues, wasDone?: StatementName): Promise<boolean> {
    return await this.#database.patiently(
      async (query, isAgain) =>
        (await query(name, values)).length > 0 ||
        (isAgain && wasDone !== undefined && (await query(wasDone, values)).length > 0),
    );
  }

  async #removeInPieces(name: "sweep" | "prune", values: PostgresValues): Promise<string[]> {
    const removed: string[] = [];
    for (;;) {
      const piece = await this.#ids(name, { ...values, limit: removedAtOnce });
      removed.push(...piece);
      if (piece.length < removedAtOnce) return removed;
    }
  }

  /** Listeners hear of it once it is committed; after some, somebody may have work. */
  #told(taskId: string, isDone: boolean, isWork = false): boolean {
    if (isDone) {
      failpoint("before-notify");
      this.#changed(taskId, isWork);
    }
    return isDone;
  }

  #changed(taskId: string, isWork = false): void {
    this.#listeners.tell(taskId, isWork);
    this.#elsewhere.tell(taskId, isWork);
  }
}
