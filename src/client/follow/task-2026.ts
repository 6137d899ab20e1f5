import { sleep, systemClock } from "../../clock.ts";
import { RpcCode } from "../../errors.ts";
import { fieldsOf, isObject, type Json, textOf } from "../../wire/json.ts";
import { cut, ServerError } from "../../wire/peer-errors.ts";
import type { Answer, TaskState, ToolResult } from "../client.ts";
import { InputRequired } from "../client-errors.ts";
import { nextRetryMs } from "../connection/pauses.ts";
import { answerMs, type ServerConnection } from "../connection/server-connection.ts";
import { toToolResult } from "../tool-result.ts";
import { toQuestion, toReply } from "./asked-questions.ts";
import { type LookOptions, type RemoteTask, readTask, type Snapshot, type Watcher } from "./remote-task.ts";
import { fromStatusMessage } from "./reported-progress.ts";

/**
 * The tasks extension of 2026-07-28: tasks/get has everything in it, and `subscriptions/listen` tells of changes where
 * it is offered.
 */

const maxAsks = 3;
const maxSubscriptions = 5;

export class Task2026 implements RemoteTask {
  readonly taskId: string;
  readonly isWaiting = false;
  readonly #connection: ServerConnection;
  /** Keys are never used again over a task's life, so each is asked once. */
  readonly #answered = new Set<string>();

  constructor(connection: ServerConnection, taskId: string) {
    this.#connection = connection;
    this.taskId = taskId;
  }

  async look({ signal }: LookOptions): Promise<Snapshot> {
    const task = await this.#request("tasks/get", {}, signal);
    const snapshot = toSnapshot(task, this.taskId);
    if (snapshot === undefined)
      throw new ServerError({ code: RpcCode.Internal, message: "tasks/get was not answered with a task" });
    return snapshot;
  }

  watch(watcher: Watcher): () => void {
    const stop = new AbortController();
    const forget = this.#connection.on("notifications/tasks", (params) => {
      const snapshot = params.taskId === this.taskId ? toSnapshot(params, this.taskId) : undefined;
      if (snapshot !== undefined) watcher.onNews(snapshot);
    });
    const unheard = this.#connection.on("notifications/subscriptions/acknowledged", (params) => {
      const { taskIds } = fieldsOf(params.notifications);
      if (Array.isArray(taskIds) && taskIds.includes(this.taskId)) watcher.onTold(true);
    });
    void this.#listen(watcher, AbortSignal.any([watcher.signal, stop.signal]));
    return () => {
      stop.abort();
      forget();
      unheard();
    };
  }

  /** Listens until the end; a server that does not offer it is asked once. */
  async #listen(watcher: Watcher, signal: AbortSignal): Promise<void> {
    for (let count = 0; count < maxSubscriptions && !signal.aborted; count++) {
      try {
        await this.#connection.request(
          "subscriptions/listen",
          { notifications: { taskIds: [this.taskId] } },
          { signal, canAsk: true },
        );
      } catch (error) {
        if (error instanceof ServerError) return;
      } finally {
        watcher.onTold(false);
      }
      await sleep(systemClock, nextRetryMs(count, undefined), signal).catch(() => undefined);
    }
  }

  async answerAsked({ state }: Snapshot, watcher: Watcher): Promise<void> {
    for (const question of state.questions ?? []) {
      if (this.#answered.has(question.key)) continue;
      if (watcher.ask === undefined)
        throw new InputRequired(question, `answer the task ${this.taskId}, then ask for its result again.`);
      let words = question;
      for (let tries = 1; ; tries++) {
        const answer = await watcher.ask(words);
        try {
          await this.answer({ [question.key]: answer });
          break;
        } catch (error) {
          const isUnfit = error instanceof ServerError && error.code === RpcCode.Params && tries < maxAsks;
          if (!isUnfit) throw error;
          words = { ...question, message: `${question.message} (${cut(error.message)})` };
        }
      }
      this.#answered.add(question.key);
    }
  }

  /** The answer that makes a task may already say that it has ended; what came out of it is in tasks/get alone. */
  async result(_snapshot: Snapshot, signal: AbortSignal | undefined): Promise<ToolResult> {
    const snapshot = await this.look({ signal });
    if (snapshot.error !== undefined) throw snapshot.error;
    if (snapshot.result !== undefined) return snapshot.result;
    throw new ServerError({
      code: RpcCode.Internal,
      message: `the task ${snapshot.state.taskId} has ended as ${snapshot.state.status}, without a result`,
    });
  }

  async answer(answers: Readonly<Record<string, Answer>>): Promise<void> {
    const inputResponses = Object.fromEntries(Object.entries(answers).map(([key, answer]) => [key, toReply(answer)]));
    await this.#request("tasks/update", { inputResponses });
  }

  async cancel(signal?: AbortSignal): Promise<void> {
    await this.#request("tasks/cancel", {}, signal);
  }

  /** Who holds a task can show its questions, so every request about one says that. */
  #request(method: string, params: Json, signal?: AbortSignal): Promise<Json> {
    return this.#connection.request(
      method,
      { taskId: this.taskId, ...params },
      { signal, isRepeatable: true, canAsk: true, limitMs: answerMs },
    );
  }
}

/** A task as tasks/get, a call and a notification give it. */
export function toSnapshot(task: Json, expectedId?: string): Snapshot | undefined {
  const state = readTask(task);
  if (state === undefined || (expectedId !== undefined && state.taskId !== expectedId)) return undefined;
  const questions = Object.entries(fieldsOf(task.inputRequests)).map(
    ([key, request]) =>
      toQuestion(key, request, state.taskId) ?? {
        key,
        message: `${textOf(fieldsOf(request).method) ?? "something"}, which this client does not know`,
        schema: {},
        taskId: state.taskId,
      },
  );
  const shown: TaskState = questions.length > 0 ? { ...state, questions } : state;
  const error =
    isObject(task.error) && typeof task.error.code === "number"
      ? new ServerError(task.error as { code: number })
      : undefined;
  return {
    state: shown,
    progress: fromStatusMessage(state.statusMessage),
    ...(state.status === "completed" && isObject(task.result) && { result: toToolResult(task.result) }),
    ...(state.status === "failed" && error !== undefined && { error }),
  };
}
