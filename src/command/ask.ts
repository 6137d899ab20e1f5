import { CommandError, Declined } from "../errors.ts";
import type { Command } from "./command.ts";
import type { Answer, CommandContext, Origin, Question } from "./context.ts";
import { describeIssue } from "./issues.ts";
import { type JsonSchema, toFlatSchema, validate } from "./schema.ts";

/** How often a question is asked again when its answer does not fit. */
const maxAnswers = 3;

/** Puts one question to whoever can answer it. */
export type Ask = (question: Question) => Promise<Answer>;

/** True when a command has questions ahead of its run. */
export function asksFirst(command: Command): boolean {
  return command.confirm !== false || command.before !== undefined;
}

/** Settles what a command asks ahead of its run; the input it is then run with. Throws `Declined` on a no. */
export async function askFirst(
  command: Command,
  input: unknown,
  { ask, origin }: { ask: Ask; origin: Origin },
): Promise<unknown> {
  const { confirm, before } = command;
  const message = typeof confirm === "function" ? confirm(input as never, origin) : confirm;
  if (message !== false) {
    const answer = await ask({ message, schema: confirmation, isConfirmation: true });
    if (answer.action !== "accept" || answer.content.confirm !== true) throw new Declined(message);
  }
  return (await before?.(input as never, asker(ask))) ?? input;
}

/** `task.ask` on top of whoever carries the questions: an answer that does not fit is asked for again. */
export function asker(ask: Ask): CommandContext["ask"] {
  return async (message, schema) => {
    const described = toFlatSchema(schema);
    let asked = described;
    for (let words = message, tries = 1; ; tries++) {
      const answer = await ask({ message: words, schema: asked, isConfirmation: false });
      if (answer.action !== "accept") throw new Declined(message);
      const checked = await validate(schema, answer.content);
      if (checked.ok) return checked.value;
      const why = checked.issues.map(describeIssue).join("; ");
      if (tries === maxAnswers) throw new CommandError(`The answer to «${message}» does not fit: ${why}`);
      words = `${message} (The last answer did not fit: ${why}.)`;
      asked = suggest(
        described,
        answer.content,
        checked.issues.map(({ field }) => field),
      );
    }
  };
}

/** The fields that were answered well are suggested as they were, so that only the others have to be answered anew. */
function suggest(schema: JsonSchema, given: Readonly<Record<string, unknown>>, wrong: readonly string[]): JsonSchema {
  const isKept = (name: string) =>
    Object.hasOwn(given, name) &&
    !wrong.some((field) => field === "" || field === name || field.startsWith(`${name}.`));
  const properties = Object.entries((schema.properties ?? {}) as Record<string, JsonSchema>);
  return {
    ...schema,
    properties: Object.fromEntries(
      properties.map(([name, field]) => [name, isKept(name) ? { ...field, default: given[name] } : field]),
    ),
  };
}

const confirmation: JsonSchema = {
  type: "object",
  properties: { confirm: { type: "boolean", title: "Yes, go ahead", default: false } },
  required: ["confirm"],
};
