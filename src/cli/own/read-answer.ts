import type { Answer, Question } from "../../command/context.ts";
import { isLink } from "../../command/foreign-question.ts";
import { UsageError } from "../../errors.ts";
import { readValue } from "../arguments.ts";
import { askInTerminal, clean, type Terminal } from "../terminal.ts";

/**
 * An answer from `field=value` words, or from the person at the terminal where there are none: `cancel` when the person
 * leaves the form.
 */
export async function readAnswer(question: Question, words: readonly string[], terminal: Terminal): Promise<Answer> {
  if (isLink(question)) return await readConsent(question, words, terminal);
  const fields = (question.schema.properties ?? {}) as Record<string, Question["schema"]>;
  const names = clean(Object.keys(fields).join(", "));
  if (words.length === 0) {
    if (terminal.canAsk) return await askInTerminal(question, terminal);
    const wanted = Object.keys(fields).map((field) => `${clean(field)}=…`);
    throw new UsageError(`It asks «${clean(question.message)}»: give ${wanted.join(" ")}`);
  }
  const content: Record<string, unknown> = {};
  for (const word of words) {
    const [, name = "", value = ""] = /^([^=]+)=(.*)$/s.exec(word) ?? [];
    if (!Object.hasOwn(fields, name))
      throw new UsageError(`"${clean(word)}": there is no field of that name; it asks for ${names}.`);
    content[name] = readField(value, fields[name] ?? {});
  }
  return { action: "accept", content };
}

/** A boolean is also yes or no, as in the form. */
function readField(text: string, schema: Question["schema"]): unknown {
  if (schema.type === "boolean" && /^(yes|no)$/i.test(text)) return text.toLowerCase() === "yes";
  return readValue(text, schema);
}

/** The answer that `--decline` gives; undefined without it. Throws where words beside it give another answer. */
export function readDecline({ decline }: { readonly decline?: unknown }, words: readonly string[]): Answer | undefined {
  if (decline !== true) return undefined;
  if (words.length > 0)
    throw new UsageError(`--decline and ${clean(words.join(" "))} exclude each other: decline, or answer.`);
  return { action: "decline" };
}

/** A link has no fields: whoever has opened it says yes. */
async function readConsent(question: Question, words: readonly string[], terminal: Terminal): Promise<Answer> {
  if (words.length === 0 && terminal.canAsk) return await askInTerminal(question, terminal);
  const word = words.length === 1 ? words[0] : undefined;
  if (word === "yes") return { action: "accept", content: {} };
  if (word === "no") return { action: "decline" };
  throw new UsageError(`It asks «${clean(question.message)}»: open the link, then answer with yes, or with no.`);
}

/** What was done with a question, as the first word of a line. */
export function verbOf({ action }: Answer): string {
  return action === "decline" ? "Declined" : "Answered";
}

/** `--status working,failed`. */
export function readStatuses<Status extends string>(text: string, known: readonly Status[]): Status[] {
  const wanted = text.split(",").map((word) => word.trim());
  const unknown = wanted.find((word) => !(known as readonly string[]).includes(word));
  if (unknown !== undefined) throw new UsageError(`--status: "${clean(unknown)}" is none of ${known.join(", ")}.`);
  return wanted as Status[];
}
