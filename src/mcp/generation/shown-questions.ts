import type { Logger } from "../../log.ts";
import type { Engine } from "../../task/engine.ts";
import { isTerminal, openQuestions, type Task, type TaskQuestion } from "../../task/task.ts";
import { answerUntilFits, askClient, canAnswer } from "../questions.ts";
import type { ClientConnection, ClientRequest } from "../request.ts";
import { relatedTask } from "../task-wire.ts";

type Which = (question: TaskQuestion) => boolean;

interface Asking {
  readonly task: Task;
  readonly caller: string;
  readonly which: Which;
}

const questionClosed = new Error("The question is no longer open.");

/**
 * The questions of tasks that a client before 2026-07-28 is shown, on one connection: each once at a time; one that
 * could not be shown may be shown again, and what is open no longer is taken back.
 */
export class ShownQuestions {
  readonly #connection: ClientConnection;
  readonly #openEngine: () => Promise<Engine>;
  readonly #log: Logger;
  /** On their way to the person, by task and key, each with what takes it back. */
  readonly #shown = new Map<string, AbortController>();

  constructor(
    connection: ClientConnection,
    { openEngine, log }: { readonly openEngine: () => Promise<Engine>; readonly log: Logger },
  ) {
    this.#connection = connection;
    this.#openEngine = openEngine;
    this.#log = log;
  }

  /** Shows a task's questions, or such of them, as soon as there is a stream to show them on. */
  follow(task: Task, caller: string, which: Which = () => true): { look(news: Task): void; stop(): void } {
    const connection = this.#connection;
    let latest = task;
    const push = () => {
      if (connection.canPush) this.#showOpen({ task: latest, caller, which }, connection, connection.closed);
    };
    const stop = connection.onStream(push);
    return {
      look: (news) => {
        this.#withdraw(news);
        // What has ended asks nothing; and its result is nothing to hold on to.
        if (isTerminal(news)) return void stop();
        latest = news;
        push();
      },
      stop,
    };
  }

  /** Shows a task's questions on the stream of a request that waits for it. */
  show(task: Task, caller: string, request: ClientRequest): void {
    this.#withdraw(task);
    this.#showOpen({ task, caller, which: () => true }, request, request.signal);
  }

  #withdraw(task: Task): void {
    const open = new Set(isTerminal(task) ? [] : openQuestions(task).map(({ key }) => idOf(task.taskId, key)));
    for (const [id, shown] of this.#shown)
      if (id.startsWith(`${task.taskId} `) && !open.has(id)) shown.abort(questionClosed);
  }

  #showOpen({ task, caller, which }: Asking, on: ClientConnection | ClientRequest, gone: AbortSignal): void {
    if (isTerminal(task)) return;
    const { capabilities } = this.#connection.client;
    for (const question of openQuestions(task))
      if (which(question) && canAnswer(question, capabilities))
        void this.#show({ taskId: task.taskId, caller, question }, on, gone);
  }

  async #show(
    { taskId, caller, question }: { taskId: string; caller: string; question: TaskQuestion },
    on: ClientConnection | ClientRequest,
    gone: AbortSignal,
  ): Promise<void> {
    const id = idOf(taskId, question.key);
    if (this.#shown.has(id)) return;
    const closing = new AbortController();
    this.#shown.set(id, closing);
    const signal = AbortSignal.any([gone, closing.signal]);
    try {
      const ask = (asked: TaskQuestion) => askClient(asked, on, signal, relatedTask(taskId));
      await answerUntilFits(await this.#openEngine(), caller, taskId, question, ask);
    } catch (error) {
      if (!signal.aborted) this.#log.debug("a question could not be shown", { error });
    } finally {
      this.#shown.delete(id);
    }
  }
}

function idOf(taskId: string, key: string): string {
  return `${taskId} ${key}`;
}
