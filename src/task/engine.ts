import { createHash } from "node:crypto";
import type { Clock } from "../clock.ts";
import type { CatalogEntry } from "../command/catalog.ts";
import type { Command } from "../command/command.ts";
import type { Answer } from "../command/context.ts";
import { describeIssue } from "../command/issues.ts";
import { refuseInput } from "../command/run.ts";
import { type JsonSchema, jsonSchema, validate } from "../command/schema.ts";
import { CommandError, InputError, RequestError } from "../errors.ts";
import { failpoint } from "../failpoint.ts";
import { createId } from "../ids.ts";
import type { Logger } from "../log.ts";
import { waitForTask } from "./feed.ts";
import type { History } from "./history.ts";
import { checkTtl, maxLiveTasks, maxPageSize } from "./limits.ts";
import type { Page, Scope, TaskStore } from "./store.ts";
import { isTerminal, openQuestions, type Task, type TaskRules, type TaskStatus } from "./task.ts";

export interface EngineOptions {
  readonly store: TaskStore;
  readonly history: History;
  readonly clock: Clock;
  readonly log: Logger;
  /** Tasks of this project are ours to run. */
  readonly project: string;
  readonly maxLive?: number;
}

export interface CreateRequest {
  readonly entry: CatalogEntry;
  readonly input: unknown;
  readonly caller: string;
  /** What the command is called in sentences; the tool's name by default. */
  readonly name?: string;
  /** Why this call becomes a task; shown by `tasks show`. */
  readonly reason: string;
  readonly ttlMs?: unknown;
  readonly idempotencyKey?: string;
  /** Start another run even if an equal one is live. */
  readonly isNew?: boolean;
}

export interface CreatedTask {
  readonly task: Task;
  /** True when the task was there already: an equal call that is live, or the same idempotency key. */
  readonly isJoined: boolean;
}

/** Callers who cannot be told apart must not be given each other's runs. */
const anonymous = "anonymous";

/** Makes, finds, answers and cancels tasks. Knows no protocol and no database. */
export class Engine {
  readonly #options: EngineOptions;

  constructor(options: EngineOptions) {
    this.#options = options;
  }

  /** Makes a call durable. When this resolves the task is on disk; when it throws, nothing was changed. */
  async create(request: CreateRequest): Promise<CreatedTask> {
    const { store, history, clock, project, maxLive = maxLiveTasks } = this.#options;
    const { entry, input, caller } = request;
    const ttlMs = checkTtl(request.ttlMs);
    const refusal = await refuseInput(entry.command, input, request.name ?? entry.toolName);
    if (refusal !== undefined) throw new InputError(refusal);
    const { command, toolName } = entry;
    const joinsEqual = command.dedupe && command.effects !== "read" && caller !== anonymous && request.isNew !== true;
    const created = await store.create(
      {
        taskId: createId(),
        caller,
        project,
        command: toolName,
        input: input ?? {},
        digest: digestOf(toolName, input ?? {}),
        idempotencyKey: request.idempotencyKey,
        reason: request.reason,
        ttlMs,
        estimateMs: await history.estimateMs(toolName, command, input),
        rules: rulesOf(command),
        createdAt: clock.now(),
      },
      { joinsEqual, maxLive },
    );
    failpoint("after-insert");
    if (created.kind === "full")
      throw new CommandError(`There are ${created.live} tasks of yours already, the most there may be; wait for one to end, or cancel one.`);
    failpoint("before-ack");
    return { task: created.task, isJoined: created.kind !== "created" };
  }

  async get(caller: string, taskId: unknown): Promise<Task> {
    const task = typeof taskId === "string" ? await this.#options.store.get(this.#scope(caller), taskId) : undefined;
    if (task === undefined) throw new UnknownTask();
    return task;
  }

  async list(caller: string, filter: { statuses?: readonly TaskStatus[]; limit?: number; cursor?: string } = {}): Promise<Page> {
    const limit = filter.limit ?? maxPageSize;
    if (!Number.isInteger(limit) || limit < 1 || limit > maxPageSize)
      throw new RequestError("params", `\`limit\` must be a whole number from 1 to ${maxPageSize}.`);
    return await this.#options.store.list(this.#scope(caller), { ...filter, limit });
  }

  /** Answers open questions; keys that are not open are passed over, as a late or repeated answer must be. True when one was taken. */
  async answer(caller: string, taskId: string, answers: Readonly<Record<string, Answer>>): Promise<boolean> {
    const task = await this.get(caller, taskId);
    let isTaken = false;
    for (const { key, schema } of openQuestions(task)) {
      const answer = Object.hasOwn(answers, key) ? answers[key] : undefined;
      if (answer?.action === "accept") await refuseAnswer(schema, answer.content);
      if (answer !== undefined && (await this.#options.store.answer(this.#scope(caller), taskId, key, answer))) isTaken = true;
    }
    return isTaken;
  }

  /** Cancels a task, durably, before it answers. False when it had ended already. */
  async cancel(caller: string, taskId: string, message = "Cancelled by the caller."): Promise<boolean> {
    await this.get(caller, taskId);
    return await this.#options.store.cancel(this.#scope(caller), taskId, message);
  }

  /** Follows a task to its end, or until `until` holds. */
  async wait(
    caller: string,
    taskId: string,
    options: { until?: (task: Task) => boolean; signal?: AbortSignal; onTask?: (task: Task) => void } = {},
  ): Promise<Task> {
    const task = await waitForTask(this.#options.store, () => this.#scope(caller), taskId, { until: isTerminal, ...options });
    if (task === undefined) throw new UnknownTask();
    return task;
  }

  async prune(caller: string): Promise<number> {
    return await this.#options.store.prune(this.#scope(caller));
  }

  #scope(caller: string): Scope {
    return { caller, now: this.#options.clock.now() };
  }
}

/** An answer that does not fit is refused while the question is still open; stored, it would fail the run. */
async function refuseAnswer(schema: JsonSchema, content: Readonly<Record<string, unknown>>): Promise<void> {
  const checked = await validate(jsonSchema(schema), content);
  if (!checked.ok) throw new RequestError("params", `The answer does not fit: ${checked.issues.map(describeIssue).join("; ")}.`);
}

/** Unknown, expired, foreign and malformed: one sentence for all, so that it tells nothing. */
export class UnknownTask extends RequestError {
  constructor() {
    super("params", "There is no such task; it may have expired.");
  }
}

/** Safe to run again after a crash: it changes nothing, or says that twice is as good as once, or has a retry rule. */
function rulesOf(command: Command): TaskRules {
  const isSafe = command.effects === "read" || command.idempotent || command.retry !== undefined;
  return { isSafe, maxAttempts: command.retry?.attempts ?? 1, backoffMs: Math.round((command.retry?.backoff ?? 1) * 1000) };
}

/** Equal for equal calls, whatever the order of their keys. */
function digestOf(toolName: string, input: unknown): string {
  return createHash("sha256")
    .update(JSON.stringify([toolName, sorted(input)]))
    .digest("base64url");
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  return Object.entries(value)
    .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
    .map(([key, item]) => [key, sorted(item)]);
}
