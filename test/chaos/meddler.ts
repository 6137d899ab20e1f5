import { appendFileSync } from "node:fs";
import path from "node:path";
import { isStoreError, messageOf } from "../../src/errors.ts";
import type { Engine } from "../../src/task/engine.ts";
import { isTerminal, openQuestions } from "../../src/task/task.ts";
import { hashOf, readLines } from "./check.ts";
import type { Ack } from "./producer.ts";
import { pick } from "./random.ts";

/**
 * What a node has asked for besides tasks, in files that are only appended to: before it asks, and what it was told.
 * Who was killed in between has asked, and was told nothing.
 */
export interface CancelLine {
  readonly taskId: string;
  readonly told?: boolean;
}

export interface AnswerLine {
  readonly taskId: string;
  readonly colour: string;
  readonly told?: boolean;
}

/** A task as somebody saw it after its end. */
export interface SeenLine {
  readonly taskId: string;
  readonly hash: string;
}

/** Answers, cancels and polls tasks, whichever node has made them. */
export class Meddler {
  readonly #engine: Engine;
  readonly #folder: string;
  readonly #random: () => number;
  #ackCount: number;

  constructor(engine: Engine, folder: string, random: () => number) {
    this.#engine = engine;
    this.#folder = folder;
    this.#random = random;
    this.#ackCount = this.#acks().length;
  }

  async meddle(): Promise<void> {
    await this.answerQuestions();
    const acks = this.#acks();
    await this.#cancelSome(acks);
    for (let n = 0; n < 3 && acks.length > 0; n++) await this.#poll(pick(this.#random, acks));
  }

  async answerQuestions(): Promise<void> {
    for (const caller of ["local:ada", "local:bob", "local:cleo"]) {
      const page = await this.#try(() => this.#engine.list(caller, { statuses: ["input_required"] }));
      for (const task of page?.tasks ?? [])
        for (const { key } of openQuestions(task)) {
          const line: AnswerLine = { taskId: task.taskId, colour: `colour ${Math.floor(this.#random() * 1e9)}` };
          const answers = { [key]: { action: "accept" as const, content: { colour: line.colour } } };
          this.#note("answers", line);
          const told = await this.#try(() => this.#engine.answer(caller, task.taskId, answers), task.taskId);
          if (told !== undefined) this.#note("answers", { ...line, told });
        }
    }
  }

  async #cancelSome(acks: readonly Ack[]): Promise<void> {
    const fresh = acks.slice(this.#ackCount).filter(() => this.#random() < 0.04);
    // Some come too late, and must not change a thing.
    const late = acks.length > 0 && this.#random() < 0.1 ? [pick(this.#random, acks)] : [];
    this.#ackCount = acks.length;
    for (const { taskId, caller } of [...fresh, ...late]) {
      this.#note("cancels", { taskId } satisfies CancelLine);
      const told = await this.#try(() => this.#engine.cancel(caller, taskId), taskId);
      if (told !== undefined) this.#note("cancels", { taskId, told } satisfies CancelLine);
    }
  }

  async #poll({ caller, taskId }: Ack): Promise<void> {
    const task = await this.#try(() => this.#engine.get(caller, taskId), taskId);
    if (task === undefined || !isTerminal(task)) return;
    const hash = hashOf(task.status, JSON.stringify(task.outcome));
    this.#note("seen", { taskId, hash } satisfies SeenLine);
  }

  /** Undefined where the database was away for too long: then nobody was told anything. */
  async #try<T>(act: () => Promise<T>, taskId = ""): Promise<T | undefined> {
    try {
      return await act();
    } catch (error) {
      if (!isStoreError(error))
        this.#note("troubles", { text: `${taskId} was acknowledged, and: ${messageOf(error)}` });
      return undefined;
    }
  }

  #acks(): Ack[] {
    return readLines<Ack>(path.join(this.#folder, "acks.jsonl"));
  }

  #note(what: "answers" | "cancels" | "seen" | "troubles", line: object): void {
    appendFileSync(path.join(this.#folder, `${what}.jsonl`), `${JSON.stringify(line)}\n`);
  }
}
