import { callerKey } from "../command/caller.ts";
import type { Logger } from "../log.ts";
import type { Engine } from "../task/engine.ts";
import type { Task, TaskQuestion } from "../task/task.ts";
import { answerUntilFits, askClient } from "./questions.ts";
import type { ClientRequest } from "./request.ts";

/** What a call asks its client while that waits, before 2026-07-28: each question once, until the call is answered. */
export class CallQuestions {
  readonly #request: ClientRequest;
  readonly #log: Logger;
  readonly #answered = new AbortController();
  readonly #shown = new Set<string>();

  constructor(request: ClientRequest, log: Logger) {
    this.#request = request;
    this.#log = log;
  }

  show(engine: Engine, { taskId }: Task, open: readonly TaskQuestion[]): void {
    for (const question of open) {
      if (this.#shown.has(question.key)) continue;
      this.#shown.add(question.key);
      void this.#ask(engine, taskId, question);
    }
  }

  /** The call has been answered: what is still open is taken back. */
  close(): void {
    this.#answered.abort();
  }

  async #ask(engine: Engine, taskId: string, question: TaskQuestion): Promise<void> {
    const request = this.#request;
    const caller = callerKey(request.caller);
    const signal = AbortSignal.any([request.signal, this.#answered.signal]);
    try {
      await answerUntilFits(engine, caller, taskId, question, (asked) => askClient(asked, request, signal));
    } catch (error) {
      if (signal.aborted) return;
      this.#log.debug("a question could not be shown", { error });
      await engine.answer(caller, taskId, { [question.key]: { action: "cancel" } }).catch(() => undefined);
    }
  }
}
