import type {
  Answer,
  CallerScope,
  Claim,
  ClaimRequest,
  Clock,
  Created,
  CreateOptions,
  Dispatcher,
  DurationCount,
  EnvironmentMarks,
  LimitedQuestion,
  ListFilter,
  NewTask,
  Task,
  TaskOutcome,
  TaskPage,
  TaskProgress,
  TaskQuestion,
  TaskRules,
  TaskStore,
  UnclaimableRequest,
} from "meanwhile/testing";
import { describe, test } from "vitest";
import { MemoryStore } from "../../src/store/memory-store.ts";
import { exerciseDispatcher } from "../store-suite/dispatcher-suite.ts";
import { exerciseStore } from "../store-suite/store-suite.ts";

type Scope = CallerScope;
type News = { progress?: TaskProgress; statusMessage?: string };
type Terms = { readonly reason: string; readonly ttlMs: number; readonly rules: TaskRules };
type Done = Promise<boolean>;
type Ids = Promise<readonly string[]>;

/** A store whose methods use only types that `meanwhile/testing` exports. */
class OwnStore implements TaskStore {
  readonly #kept: MemoryStore;

  constructor(clock: Clock) {
    this.#kept = new MemoryStore(clock);
  }

  create = (task: NewTask, options: CreateOptions): Promise<Created> => this.#kept.create(task, options);
  get = (scope: Scope, taskId: string): Promise<Task | undefined> => this.#kept.get(scope, taskId);
  list = (scope: Scope, filter: ListFilter): Promise<TaskPage> => this.#kept.list(scope, filter);
  findEqual = (scope: Scope, project: string, digest: string, marks?: EnvironmentMarks): Promise<Task | undefined> =>
    this.#kept.findEqual(scope, project, digest, marks);
  mayHaveLive = (project: string, command: string): boolean => this.#kept.mayHaveLive(project, command);
  answer = (scope: Scope, taskId: string, key: string, answer: Answer): Done =>
    this.#kept.answer(scope, taskId, key, answer);
  cancel = (scope: Scope, taskId: string, message: string): Done => this.#kept.cancel(scope, taskId, message);
  dropToken = (scope: Scope, taskId: string): Done => this.#kept.dropToken(scope, taskId);
  dropKey = (scope: Scope, taskId: string): Done => this.#kept.dropKey(scope, taskId);
  claim = (request: ClaimRequest): Promise<Task | undefined> => this.#kept.claim(request);
  onWork = (listener: () => void): (() => void) => this.#kept.onWork(listener);
  keepLeases = (worker: string, leaseMs: number, everyMs: number): (() => void | Promise<void>) =>
    this.#kept.keepLeases(worker, leaseMs, everyMs);
  report = (claim: Claim, news: News): Done => this.#kept.report(claim, news);
  ask = (claim: Claim, question: LimitedQuestion): Promise<TaskQuestion | undefined> => this.#kept.ask(claim, question);
  countOpenQuestions = (scope: Scope, most: number): Promise<number> => this.#kept.countOpenQuestions(scope, most);
  settle = (claim: Claim, outcome: TaskOutcome): Done => this.#kept.settle(claim, outcome);
  retryLater = (claim: Claim, delayMs: number, why: string): Done => this.#kept.retryLater(claim, delayMs, why);
  giveBack = (claim: Claim, why?: string): Done => this.#kept.giveBack(claim, why);
  handOut = (claim: Claim, terms: Terms): Done => this.#kept.handOut(claim, terms);
  forget = (claim: Claim): Done => this.#kept.forget(claim);
  keepStep = (claim: Claim, name: string, json: string, rules?: Pick<TaskRules, "isSafe">): Done =>
    this.#kept.keepStep(claim, name, json, rules);
  steps = (taskId: string): Promise<ReadonlyMap<string, string>> => this.#kept.steps(taskId);
  workers = (): Ids => this.#kept.workers();
  interrupt = (worker?: string, expiredBefore?: number): Ids => this.#kept.interrupt(worker, expiredBefore);
  lapse = (): Ids => this.#kept.lapse();
  markUnclaimable = (request: UnclaimableRequest): Ids => this.#kept.markUnclaimable(request);
  setEnvironment = (scope: Scope, taskId: string, environment: EnvironmentMarks): Done =>
    this.#kept.setEnvironment(scope, taskId, environment);
  sweep = (): Promise<number> => this.#kept.sweep();
  prune = (scope: Scope, taskId?: string): Promise<number> => this.#kept.prune(scope, taskId);
  putRight = (): Promise<number> => this.#kept.putRight();
  now = (): number => this.#kept.now();
  recordDurations = (counts: readonly DurationCount[]): Promise<void> => this.#kept.recordDurations(counts);
  durations = (command?: string): Promise<readonly DurationCount[]> => this.#kept.durations(command);
  onChange = (listener: (taskId: string | undefined) => void, taskId?: string): (() => void) =>
    this.#kept.onChange(listener, taskId);
  watchClosely = (_isWaiting: boolean): void => this.#kept.watchClosely();
  close = (): Promise<void> => this.#kept.close();
}

/** A dispatcher whose methods use only types that `meanwhile/testing` exports. */
class OwnDispatcher implements Dispatcher {
  readonly #store: TaskStore;

  constructor(store: TaskStore) {
    this.#store = store;
  }

  offer = (_ticket: string, _delayMs?: number): void => undefined;
  next = (request: ClaimRequest): Promise<Task | undefined> => this.#store.claim(request);
  onWork = (listener: () => void): (() => void) => this.#store.onWork(listener);
  setRoom = (_hasRoom: boolean): void => undefined;
  close = (): Promise<void> => Promise.resolve();
}

describe("a store with the types of meanwhile/testing", () => {
  exerciseStore(test, ({ clock }) => new OwnStore(clock), { hasPlaces: false });
});

describe("a dispatcher with the types of meanwhile/testing", () => {
  exerciseDispatcher(test, {
    openStore: (clock) => new OwnStore(clock),
    openDispatcher: (store) => new OwnDispatcher(store),
  });
});
