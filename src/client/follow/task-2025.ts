import { sleep, systemClock, within } from "../../clock.ts";
import { RequestError, RpcCode } from "../../errors.ts";
import type { Json } from "../../wire/json.ts";
import { ConnectionError, ServerError } from "../../wire/peer-errors.ts";
import type { Answer, Question, ToolResult } from "../client.ts";
import { InputRequired } from "../client-errors.ts";
import { answerMs, type ServerConnection } from "../connection/server-connection.ts";
import { toToolResult } from "../tool-result.ts";
import { type Askers, askOrFail } from "./asked-questions.ts";
import { isTerminal, type LookOptions, type RemoteTask, readTask, type Snapshot, type Watcher } from "./remote-task.ts";
import { fromStatusMessage } from "./reported-progress.ts";

/**
 * Core tasks of 2025-11-25: tasks/get says how one stands, tasks/result gives what came out of it, for failed ones too.
 * Questions come as requests of the server's, at the latest on the stream of a tasks/result, so one is opened as soon
 * as there is a question.
 */

const questionMs = 2_000;

interface Facts2025 {
  readonly connection: ServerConnection;
  readonly askers: Askers;
  readonly taskId: string;
  /** What a task asks, where the server has another way to say it. */
  readonly findQuestions: () => Promise<readonly Question[]>;
}

export class Task2025 implements RemoteTask {
  readonly taskId: string;
  readonly isWaiting = false;
  readonly #facts: Facts2025;
  readonly #how: string;
  #isFetching = false;

  constructor(facts: Facts2025) {
    this.#facts = facts;
    this.taskId = facts.taskId;
    this.#how = `ask for the result of the task ${facts.taskId} again, with somebody to answer.`;
  }

  async look({ signal, wait = false }: LookOptions): Promise<Snapshot> {
    const snapshot = toSnapshot(await this.#request("tasks/get", signal), this.taskId);
    if (snapshot === undefined)
      throw new ServerError({ code: RpcCode.Internal, message: "tasks/get was not answered with a task" });
    // Who follows the task is asked by the server itself; who only looks would not hear the question.
    if (wait || snapshot.state.status !== "input_required") return snapshot;
    const questions = await this.#facts.findQuestions();
    return questions.length === 0 ? snapshot : { ...snapshot, state: { ...snapshot.state, questions } };
  }

  watch(watcher: Watcher): () => void {
    const { connection, askers } = this.#facts;
    const forget = connection.on("notifications/tasks/status", (params) => {
      const snapshot = toSnapshot(params, this.taskId);
      if (snapshot !== undefined) watcher.onNews(snapshot);
    });
    const unlisten = askers.add({ taskId: this.taskId, ask: (question) => askOrFail(question, watcher, this.#how) });
    return () => {
      forget();
      unlisten();
    };
  }

  async answerAsked({ state }: Snapshot, watcher: Watcher): Promise<void> {
    if (!this.#isFetching) {
      this.#isFetching = true;
      void this.#fetch(watcher).finally(() => (this.#isFetching = false));
    }
    if (watcher.ask !== undefined) return;
    // The question's own words come as a request; where they do not, the status has to do.
    await sleep(systemClock, questionMs, watcher.signal);
    const question = { key: "", message: state.statusMessage ?? "something", schema: {}, taskId: this.taskId };
    throw new InputRequired(question, this.#how);
  }

  /** Waits for the result while questions come on its stream. */
  async #fetch(watcher: Watcher): Promise<void> {
    try {
      const result = await this.result(undefined, watcher.signal);
      watcher.onNews({
        state: { taskId: this.taskId, status: result.isError === true ? "failed" : "completed" },
        result,
      });
    } catch (error) {
      if (!(error instanceof ConnectionError) && !watcher.signal.aborted)
        watcher.onNews(await this.#ended(error, watcher));
    }
  }

  /** A cancelled task has no result; the server's own words for any other end are in its error. */
  async #ended(error: unknown, watcher: Watcher): Promise<Snapshot> {
    const snapshot = await this.look({ signal: watcher.signal, wait: true }).catch(() => undefined);
    if (snapshot !== undefined && isTerminal(snapshot.state.status)) return snapshot;
    return { state: { taskId: this.taskId, status: "failed" }, error: error as Error };
  }

  async result(_snapshot: Snapshot | undefined, signal: AbortSignal | undefined): Promise<ToolResult> {
    return toToolResult(
      await this.#facts.connection.request("tasks/result", { taskId: this.taskId }, { signal, isRepeatable: true }),
    );
  }

  /** Waits for the server to ask, and answers: this generation has no message to answer with. */
  async answer(answers: Readonly<Record<string, Answer>>): Promise<void> {
    const questions = await this.#facts.findQuestions();
    const left = new Map(Object.entries(answers));
    const take = (question: Question): Answer | undefined => {
      const key =
        questions.find(({ message }) => message === question.message)?.key ??
        (left.has(question.key) ? question.key : [...left.keys()][0]);
      const answer = key === undefined ? undefined : left.get(key);
      if (key !== undefined) left.delete(key);
      return answer;
    };
    const answered = Promise.withResolvers<void>();
    const stop = new AbortController();
    const unlisten = this.#facts.askers.add({
      taskId: this.taskId,
      ask: async (question) => {
        const answer = take(question);
        if (answer === undefined) return await new Promise<Answer>(() => undefined);
        // Once it has been written, waiting for the result has served its purpose.
        if (left.size === 0) systemClock.after(answerGapMs, () => answered.resolve());
        return answer;
      },
    });
    this.result(undefined, stop.signal).then(
      () => answered.resolve(),
      (error: unknown) => answered.reject(error),
    );
    try {
      await within(systemClock, answerMs, answered.promise, () => {
        throw new RequestError("params", `The server did not ask anything about the task ${this.taskId}.`);
      });
    } finally {
      unlisten();
      stop.abort();
    }
  }

  async cancel(signal?: AbortSignal): Promise<void> {
    await this.#request("tasks/cancel", signal);
  }

  #request(method: string, signal?: AbortSignal): Promise<Json> {
    return this.#facts.connection.request(
      method,
      { taskId: this.taskId },
      { signal, isRepeatable: true, limitMs: answerMs },
    );
  }
}

const answerGapMs = 200;

export function toSnapshot(task: Json, expectedId?: string): Snapshot | undefined {
  const state = readTask(task);
  if (state === undefined || (expectedId !== undefined && state.taskId !== expectedId)) return undefined;
  return { state, progress: fromStatusMessage(state.statusMessage) };
}
