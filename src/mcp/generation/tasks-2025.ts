import { type Caller, callerKey, isKnown } from "../../command/caller.ts";
import { RequestError } from "../../errors.ts";
import type { Logger } from "../../log.ts";
import type { Engine } from "../../task/engine.ts";
import { ProgressReader } from "../../task/progress.ts";
import { estimatedSeconds, toWords } from "../../task/status-line.ts";
import { isTerminal, type Task } from "../../task/task.ts";
import { type ResultRoom, readWithRoom } from "../outbound.ts";
import type { PollLimit } from "../poll-limit.ts";
import { ProgressSender } from "../progress-sender.ts";
import type { ClientConnection, ClientRequest, Handler, Result } from "../request.ts";
import { relatedTask, resultOrError, type TaskTelling, toTask2025 } from "../task-wire.ts";
import { noteUnlessGone } from "./note-unless-gone.ts";
import { ShownQuestions } from "./shown-questions.ts";

/**
 * Core tasks of 2025-11-25: the client asks for one with `params.task`, polls tasks/get, and fetches tasks/result,
 * which waits. Meanwhile the connection is told of every change of status, of progress on the call's own token, and of
 * questions, on whichever stream is open.
 */

const immediateResponse = "io.modelcontextprotocol/model-immediate-response";

export interface Tasks2025Options extends TaskTelling {
  readonly log: Logger;
  readonly polls: PollLimit;
  readonly results: ResultRoom;
  /** For clients that never fetch the result of a failed task. */
  readonly errorsAsCompleted: boolean;
}

/** What a server of this revision declares; a list only where callers can be told apart. */
export function tasksCapability(caller: Caller): Record<string, unknown> {
  return { ...(isKnown(caller) && { list: {} }), cancel: {}, requests: { tools: { call: {} } } };
}

/** One connection's tasks. */
export class Tasks2025 {
  readonly #options: Tasks2025Options;
  readonly #connection: ClientConnection;
  readonly questions: ShownQuestions;
  /** Tasks this connection is told about: each once, however many calls have joined it. */
  readonly #followed = new Set<string>();

  constructor(connection: ClientConnection, options: Tasks2025Options) {
    this.#connection = connection;
    this.#options = options;
    this.questions = new ShownQuestions(connection, options);
  }

  /** The methods. `tasks/list` is there only for callers who have one. */
  methods(caller: Caller): Readonly<Record<string, Handler>> {
    const get = async ({ taskId }: TaskParams, { engine, key }: TaskCall) => {
      await this.#options.polls.admit(key, taskId);
      return this.#toWire(await engine.get(key, taskId));
    };
    return {
      "tasks/get": this.#handler(get),
      "tasks/result": this.#handler((params, call) => this.#result(params, call)),
      "tasks/cancel": this.#handler((params, call) => this.#cancel(params, call)),
      ...(isKnown(caller) && { "tasks/list": this.#handler((params, call) => this.#list(params, call)) }),
    };
  }

  /** What a call that asked for a task is answered with. */
  toCreated(task: Task, note: string | undefined): Result {
    const seconds = estimatedSeconds(task);
    const estimate = seconds === undefined ? "" : ` It will take about ${toWords(seconds)}.`;
    const text = `${task.command} runs as task ${task.taskId}.${estimate}${note === undefined ? "" : ` ${note}`}`;
    return { task: this.#toWire(task), _meta: { [immediateResponse]: text } } as Result;
  }

  /** Tells the connection what becomes of a task it has started. */
  async follow(task: Task, about: { caller: string; progressToken: string | number | undefined }): Promise<void> {
    const { openEngine, clock } = this.#options;
    const { closed } = this.#connection;
    if (this.#followed.has(task.taskId)) return;
    this.#followed.add(task.taskId);
    const sender = new ProgressSender({
      token: about.progressToken,
      related: relatedTask(task.taskId),
      monotonic: () => clock.monotonic(),
      send: (params) => this.#notify("notifications/progress", params),
    });
    let reader: ProgressReader | undefined;
    let status = this.#toWire(task).status;
    const onTask = (news: Task) => {
      // It may have ended, and its client have its result, before this begins.
      reader ??= new ProgressReader(news);
      this.#progress(news, sender, reader);
      const wire = this.#toWire(news);
      if (wire.status !== status) this.#notify("notifications/tasks/status", wire);
      status = wire.status;
      questions.look(news);
    };
    const questions = this.questions.follow(task, about.caller);
    try {
      await (await openEngine()).wait(about.caller, task.taskId, { signal: closed, onTask });
    } catch (error) {
      noteUnlessGone(error, closed, this.#options.log);
    } finally {
      questions.stop();
      this.#followed.delete(task.taskId);
      sender.finish();
    }
  }

  #handler(answer: (params: TaskParams, call: TaskCall) => Promise<Result>): Handler {
    return async (params, request) =>
      await answer(params, { request, engine: await this.#options.openEngine(), key: callerKey(request.caller) });
  }

  /** Waits for the end, carrying questions and progress on this request's own stream. */
  async #result({ taskId }: TaskParams, { request, engine, key }: TaskCall): Promise<Result> {
    const { clock, find, isDebug } = this.#options;
    const task = await engine.get(key, taskId);
    const sender = new ProgressSender({
      token: request.progressToken,
      related: relatedTask(task.taskId),
      monotonic: () => clock.monotonic(),
      send: (params) => request.notify("notifications/progress", params),
    });
    const reader = new ProgressReader(task);
    const onTask = (latest: Task) => {
      this.#progress(latest, sender, reader);
      this.questions.show(latest, key, request);
    };
    try {
      const ended = await readWithRoom(request, this.#options.results, () =>
        this.#waitForEnd(task, { engine, key, signal: request.signal, onTask }),
      );
      if (!isTerminal(ended))
        throw new RequestError(
          "busy",
          "The server is stopping, and the task goes on in the next one; ask again in a moment.",
        );
      const result = resultOrError(ended, find, isDebug || request.client.wantsLog);
      return { ...result, _meta: { ...(result._meta as object | undefined), ...relatedTask(ended.taskId) } };
    } finally {
      sender.finish();
    }
  }

  /**
   * A server that leaves waits on for what it still runs. Where a front asks again elsewhere it hangs up instead, so
   * there it just waits.
   */
  async #waitForEnd(task: Task, { engine, key, signal, onTask }: Waiting): Promise<Task> {
    const { leaving } = engine;
    if (this.#connection.isFront) return await engine.wait(key, task.taskId, { signal, onTask });
    try {
      return await engine.wait(key, task.taskId, { signal: AbortSignal.any([signal, leaving]), onTask });
    } catch (error) {
      if (signal.aborted || !leaving.aborted) throw error;
      return await engine.wait(key, task.taskId, {
        until: (latest) => isTerminal(latest) || latest.lease === undefined,
        signal,
        onTask,
      });
    }
  }

  async #cancel({ taskId }: TaskParams, { engine, key }: TaskCall): Promise<Result> {
    const task = await engine.get(key, taskId);
    if (!(await engine.cancel(key, task.taskId))) {
      const { status } = await engine.get(key, task.taskId);
      throw new RequestError("params", `The task has ended already (${status}), so it cannot be cancelled.`);
    }
    return this.#toWire(await engine.get(key, task.taskId));
  }

  async #list({ cursor, limit }: TaskParams, { engine, key }: TaskCall): Promise<Result> {
    if (cursor !== undefined && typeof cursor !== "string")
      throw new RequestError("params", "`cursor` must be a text.");
    if (limit === null) throw new RequestError("params", "`limit` must be a whole number from 1 to 100.");
    const page = await engine.list(key, {
      ...(cursor !== undefined && { cursor }),
      ...(limit !== undefined && { limit: limit as number }),
    });
    return {
      tasks: page.tasks.map((task) => this.#toWire(task)),
      ...(page.nextCursor !== undefined && { nextCursor: page.nextCursor }),
    };
  }

  #progress(task: Task, sender: ProgressSender, reader: ProgressReader): void {
    const { clock } = this.#options;
    const update = reader.next(task);
    if (update !== undefined)
      sender.update(update, { elapsedMs: clock.now() - (task.startedAt ?? clock.now()), estimateMs: task.estimateMs });
  }

  #toWire(task: Task): Record<string, unknown> {
    return toTask2025(task, this.#options.clock.now(), this.#options.errorsAsCompleted);
  }

  #notify(method: string, params: Record<string, unknown>): void {
    this.#connection.notify(method, params);
  }
}

interface TaskParams {
  readonly taskId?: unknown;
  readonly cursor?: unknown;
  readonly limit?: unknown;
}

interface Waiting {
  readonly engine: Engine;
  readonly key: string;
  readonly signal: AbortSignal;
  readonly onTask: (task: Task) => void;
}

interface TaskCall {
  readonly request: ClientRequest;
  readonly engine: Engine;
  readonly key: string;
}
