import { callerIn, type ForCaller } from "../auth/app-caller.ts";
import { toTimestamp } from "../clock.ts";
import { callerKey } from "../command/caller.ts";
import type { Answer, Question } from "../command/context.ts";
import { resultOf } from "../mcp/task-wire.ts";
import type { RuntimeCore } from "../runtime/runtime.ts";
import { type Engine, UnknownTask } from "../task/engine.ts";
import { statusLine } from "../task/status-line.ts";
import { isTerminal, openQuestions, type Task, type TaskProgress, type TaskStatus } from "../task/task.ts";
import { listTokens, progressOfToken, type TokenAnswer, type TokenProgress } from "../task/token-progress.ts";
import { asCallResult, type CallResult } from "./result-copy.ts";

/** A task as the app around a server sees it. */
export interface ServerTask {
  readonly taskId: string;
  readonly tool: string;
  readonly status: TaskStatus;
  /** The newest thing to say about it, in one line. */
  readonly statusMessage: string;
  readonly progress: TaskProgress | undefined;
  /** What it asks, as long as it is not answered. */
  readonly questions: readonly (Pick<Question, "message" | "schema" | "isConfirmation"> & { readonly key: string })[];
  /** Attempts begun so far. */
  readonly attempts: number;
  readonly createdAt: string;
  readonly updatedAt: string;
  /** What the call would have been answered with, once it has ended; not in a list. */
  readonly result: CallResult | undefined;
  /** The JSON-RPC error that it has ended in, in place of a result; only tools of other servers do. */
  readonly error: { readonly code: number; readonly message: string; readonly data?: unknown } | undefined;
}

export interface ServerTaskPage {
  /** Newest first. */
  readonly tasks: readonly ServerTask[];
  readonly nextCursor: string | undefined;
}

export interface ServerTaskFilter extends ForCaller {
  readonly statuses?: readonly TaskStatus[] | undefined;
  /** At most 100, which is the default. */
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
}

/** Tasks of one caller: of the user that this process belongs to, unless another is named. */
export interface ServerTasks {
  /** Undefined for a task that is not there, has expired, or is another caller's. */
  get(taskId: string, options?: ForCaller): Promise<ServerTask | undefined>;
  list(filter?: ServerTaskFilter): Promise<ServerTaskPage>;
  /** Stops it, durably, before this resolves; false when it had ended already. */
  cancel(taskId: string, options?: ForCaller): Promise<boolean>;
  /** Answers questions by their keys; false when none of them was open. */
  answer(taskId: string, answers: Readonly<Record<string, Answer>>, options?: ForCaller): Promise<boolean>;
  /** The task once it has ended; rejects when the server is closed before that. */
  wait(taskId: string, options?: ForCaller & { readonly signal?: AbortSignal | undefined }): Promise<ServerTask>;
}

/**
 * Progress of live calls by their progress tokens: of the user that this process belongs to, of a named caller, or with
 * `{ kind: "anonymous" }` of all callers without a credential.
 */
export interface ServerProgress {
  /** The progress of the live call with this token; `ok: false` and the reason where there is no such call. */
  progressOf(token: string | number, options?: ForCaller): Promise<TokenAnswer>;
  /** Every live call that has a progress token, newest first. */
  listProgress(options?: ForCaller): Promise<readonly TokenProgress[]>;
}

/** Returns what a caller's tasks are stored under; throws an InsufficientScope for a caller without the right. */
const keyIn =
  (core: RuntimeCore) =>
  (method: string, { caller: named }: ForCaller = {}) => {
    const caller = callerIn(core, named);
    void core.serving.served.gate.authorize({ caller }, method, {});
    return callerKey(caller);
  };

/** The view on an open server. */
export function createServerTasks(core: RuntimeCore): ServerTasks {
  const openEngine = async () => (await core.tasks.calls()).engine;
  const keyOf = keyIn(core);
  return {
    async get(taskId, options) {
      const task = await find(await openEngine(), keyOf("tasks/get", options), taskId);
      return task && toServerTask(task, core);
    },
    async list({ statuses, limit, cursor, ...options } = {}) {
      const page = await (await openEngine()).list(keyOf("tasks/list", options), {
        ...(statuses !== undefined && { statuses }),
        ...(limit !== undefined && { limit }),
        ...(cursor !== undefined && { cursor }),
      });
      return { ...page, tasks: page.tasks.map((task) => toListed(task, core)) };
    },
    async cancel(taskId, options) {
      return await (await openEngine()).cancel(keyOf("tasks/cancel", options), taskId);
    },
    async answer(taskId, answers, options) {
      for (const [key, answer] of Object.entries(answers)) refuseAnswer(key, answer);
      return await (await openEngine()).answer(keyOf("tasks/update", options), taskId, answers);
    },
    async wait(taskId, options = {}) {
      const engine = await openEngine();
      const signal = AbortSignal.any([engine.leaving, ...(options.signal === undefined ? [] : [options.signal])]);
      return toServerTask(await engine.wait(keyOf("tasks/result", options), taskId, { signal }), core);
    },
  };
}

export function createServerProgress(core: RuntimeCore): ServerProgress {
  const openEngine = async () => (await core.tasks.calls()).engine;
  const keyOf = keyIn(core);
  return {
    async progressOf(token, options) {
      const engine = await openEngine();
      return await progressOfToken(engine, keyOf("tasks/get", options), { token, now: engine.now() });
    },
    async listProgress(options) {
      const engine = await openEngine();
      return await listTokens(engine, keyOf("tasks/list", options), engine.now());
    },
  };
}

async function find(engine: Engine, caller: string, taskId: string): Promise<Task | undefined> {
  try {
    return await engine.get(caller, taskId);
  } catch (error) {
    if (error instanceof UnknownTask) return undefined;
    throw error;
  }
}

function toListed(task: Task, { clock }: RuntimeCore): ServerTask {
  const { taskId, command: tool, status, progress, attempts } = task;
  return {
    taskId,
    tool,
    status,
    statusMessage: statusLine(task, clock.now()),
    progress,
    questions: (isTerminal(task) ? [] : openQuestions(task)).map(({ key, message, schema, isConfirmation }) => ({
      key,
      message,
      schema,
      isConfirmation,
    })),
    attempts,
    createdAt: toTimestamp(task.createdAt),
    updatedAt: toTimestamp(task.updatedAt),
    result: undefined,
    error: undefined,
  };
}

function toServerTask(task: Task, core: RuntimeCore): ServerTask {
  const listed = toListed(task, core);
  if (!isTerminal(task)) return listed;
  if (task.outcome.ending === "failed" && task.outcome.rpc !== undefined) return { ...listed, error: task.outcome.rpc };
  const result = resultOf(task, (tool) => core.catalog.get(tool)?.command, { isDebug: false });
  return { ...listed, result: asCallResult(result) };
}

function refuseAnswer(key: string, answer: Answer): void {
  const { action, content } = (answer ?? {}) as { readonly action?: unknown; readonly content?: unknown };
  const isAccepted = action === "accept" && typeof content === "object" && content !== null;
  if (!isAccepted && action !== "decline" && action !== "cancel")
    throw new TypeError(
      `The answer to ${JSON.stringify(key)} must be { action: "accept", content: { … } }, { action: "decline" } or { action: "cancel" }.`,
    );
}
