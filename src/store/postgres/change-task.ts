import type { Answer } from "../../command/context.ts";
import type { CallerScope, Claim } from "../../task/store.ts";
import {
  isTerminal,
  type LimitedQuestion,
  type LiveTask,
  lapsedQuestion,
  type Task,
  type TaskQuestion,
} from "../../task/task.ts";
import { apply, cancelledOutcome, lapsedMessage, type TaskEvent } from "../../task/transitions.ts";
import type { Database, Query } from "./database.ts";
import { fromQuestions, type TaskRow, toTask } from "./rows.ts";

/**
 * Questions are JSON that the database does not look into. So what is asked and answered is read, changed by the rules
 * themselves, and written if nothing has happened in between; otherwise all of that again.
 */

interface ReadTask extends TaskRow {
  readonly now: number;
}

/** The question as it was asked; undefined when the claim does not hold. */
export function askQuestion(
  database: Database,
  claim: Claim,
  question: LimitedQuestion,
): Promise<TaskQuestion | undefined> {
  const words = JSON.parse(JSON.stringify(question)) as LimitedQuestion;
  let last: TaskQuestion | undefined;
  return database.patiently((query, isAgain) =>
    change(query, () => query<ReadTask>("findHeld", { ...claim }), {
      event: { type: "ask", fence: claim.fence, question: words },
      wasDone: (task) => (isAgain && last !== undefined && hasQuestion(task, last) ? last : undefined),
      after: (task) => (last = task.questions.at(-1)),
    }),
  );
}

/** False when there is no such open question. */
export async function answerQuestion(
  database: Database,
  { caller }: CallerScope,
  given: { readonly taskId: string; readonly key: string; readonly answer: Answer },
): Promise<boolean> {
  const { taskId, key } = given;
  const answer = JSON.parse(JSON.stringify(given.answer)) as Answer;
  let last: TaskQuestion | undefined;
  const answered = await database.patiently((query, isAgain) =>
    change(query, () => query<ReadTask>("findOwn", { taskId, caller }), {
      event: { type: "answer", key, answer },
      wasDone: (task) => (isAgain && last !== undefined && hasQuestion(task, last) ? last : undefined),
      after: (task) => (last = task.questions.find((question) => question.key === key)),
    }),
  );
  return answered !== undefined;
}

/** Ends what asks a question whose time is over; the ids of what it ended. */
export async function lapseQuestions(database: Database): Promise<string[]> {
  return await database.patiently(async (query) => {
    const ended: string[] = [];
    for (const row of await query<ReadTask>("findLapsed", {})) {
      const question = lapsedQuestion(toTask(row), row.now);
      if (question === undefined) continue;
      const statusMessage = lapsedMessage(question);
      const values = { taskId: row.task_id, version: row.version, statusMessage };
      const over = await query("lapse", { ...values, outcomeHead: cancelledHead(statusMessage) });
      if (over.length > 0) ended.push(row.task_id);
    }
    return ended;
  });
}

/** A cancelled task's outcome as JSON, up to the time that it took: that the database knows. */
export function cancelledHead(message: string): string {
  return JSON.stringify(cancelledOutcome(message, 0)).replace(/0\}$/, "");
}

interface Change {
  readonly event: TaskEvent;
  /** What an earlier try, whose answer never came, has come to. */
  readonly wasDone: (task: Task) => TaskQuestion | undefined;
  /** What it comes to; noted before it is written. */
  readonly after: (task: LiveTask) => TaskQuestion | undefined;
}

async function change(query: Query, read: () => Promise<ReadTask[]>, terms: Change): Promise<TaskQuestion | undefined> {
  for (;;) {
    const [row] = await read();
    if (row === undefined) return undefined;
    const before = toTask(row);
    const done = terms.wasDone(before);
    if (done !== undefined) return done;
    const after = apply(before, terms.event, row.now);
    if (after === undefined || isTerminal(after)) return undefined;
    const question = terms.after(after);
    const { status, notBefore, updatedAt } = after;
    const values = { taskId: before.taskId, version: before.version, status, notBefore, updatedAt };
    const written = await query("writeQuestions", { ...values, ...fromQuestions(after.questions) });
    if (written.length > 0) return question;
  }
}

/** It was asked at that moment, and answered so if it is meant to be. */
function hasQuestion({ questions }: Task, { key, askedAt, answer, answeredAt }: TaskQuestion): boolean {
  const found = questions.find((question) => question.key === key && question.askedAt === askedAt);
  if (found === undefined || answer === undefined) return found !== undefined;
  return found.answeredAt === answeredAt && JSON.stringify(found.answer) === JSON.stringify(answer);
}
