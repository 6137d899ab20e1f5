import { CommandError } from "../errors.ts";
import { cut } from "../wire/peer-errors.ts";
import type { Question } from "./client.ts";

export { ConnectionError, ServerError } from "../wire/peer-errors.ts";

/** The server asks something that nobody here can answer. A task is left alive and waits for its answer. */
export class InputRequired extends CommandError {
  override readonly name = "InputRequired";
  readonly question: Question;
  readonly taskId: string | undefined;

  constructor(question: Question, how: string) {
    super(`The server asks «${cut(question.message)}», and nobody here can answer: ${how}`);
    this.question = question;
    this.taskId = question.taskId;
  }
}
