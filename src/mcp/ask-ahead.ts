import type { Clock } from "../clock.ts";
import { askFirst } from "../command/ask.ts";
import type { Command } from "../command/command.ts";
import type { Answer, Origin, Question } from "../command/context.ts";
import { validate } from "../command/schema.ts";
import type { TaskQuestion } from "../task/task.ts";
import { canElicit, toAnswer } from "./questions.ts";
import type { ClientRequest } from "./request.ts";

/** How the questions ahead of a run stand: all answered, some open, or a no. */
export type Ahead =
  | { readonly kind: "ready"; readonly answered: readonly TaskQuestion[] }
  | { readonly kind: "open"; readonly asked: readonly TaskQuestion[] }
  | { readonly kind: "refused"; readonly error: unknown };

export interface AheadOptions {
  /** What was asked before, with the answers that came. */
  readonly known: readonly TaskQuestion[];
  readonly clock: Clock;
  readonly origin: Origin;
}

/** Asks what a command asks ahead of its run, as far as the answers go. Keeps nothing: the client carries it all. */
export async function askAhead(
  command: Command,
  input: unknown,
  { known, clock, origin }: AheadOptions,
): Promise<Ahead> {
  const checked =
    command.input === undefined ? { ok: true as const, value: {} } : await validate(command.input, input ?? {});
  // Arguments that do not fit are refused where every call's are.
  if (!checked.ok) return { kind: "ready", answered: [] };
  const asked: TaskQuestion[] = [];
  const unused = [...known];
  const hasAsked = Promise.withResolvers<"open">();
  const ask = (question: Question): Promise<Answer> => {
    const at = unused.findIndex(({ message }) => message === question.message);
    const earlier = at === -1 ? undefined : unused.splice(at, 1)[0];
    asked.push(earlier ?? { ...question, key: `q${asked.length + 1}`, askedAt: clock.now() });
    if (earlier?.answer !== undefined) return Promise.resolve(earlier.answer);
    // Questions asked side by side go out together.
    clock.after(0, () => hasAsked.resolve("open"));
    return new Promise(() => undefined);
  };
  try {
    const outcome = await Promise.race([
      askFirst(command, checked.value, { ask, origin }).then(() => "ready" as const),
      hasAsked.promise,
    ]);
    return outcome === "ready" ? { kind: "ready", answered: asked } : { kind: "open", asked };
  } catch (error) {
    return { kind: "refused", error };
  }
}

/**
 * Whether what somebody else's tool asks goes out before it is a task. Once: what it asks with the answers in hand, it
 * asks as the task that it is by then.
 */
export function mayAskAhead({ foreign }: Command, { client, requestState }: ClientRequest): boolean {
  if (foreign?.asksFirst !== true) return false;
  return client.isModern && requestState === undefined && canElicit(client.capabilities);
}

/** Puts the answers of a second leg to the questions of the first. */
export function withAnswers(
  asked: readonly TaskQuestion[],
  responses: Readonly<Record<string, unknown>>,
): TaskQuestion[] {
  return asked.map((question) =>
    question.answer === undefined && Object.hasOwn(responses, question.key)
      ? { ...question, answer: toAnswer(responses[question.key]) }
      : question,
  );
}
