import { ownArguments } from "../command/aliases.ts";
import type { Catalog, CatalogEntry, ListedEntry } from "../command/catalog.ts";
import type { JsonSchema } from "../command/schema.ts";
import { messageOf } from "../errors.ts";
import { badParams } from "./params.ts";
import type { Result } from "./request.ts";

/**
 * Every command is also a prompt, a slash command in most hosts: one message that asks the model to use the tool with
 * these arguments. It is there because clients complete the arguments of prompts, and of nothing else.
 */
export interface OwnPrompts {
  list(): Promise<readonly Prompt[]>;
  has(name: string): boolean;
  get(name: string, given: unknown): Promise<Result>;
}

interface Prompt {
  readonly name: string;
  readonly description: string;
  readonly arguments: readonly { readonly name: string; readonly description?: string; readonly required: boolean }[];
}

export function createPrompts(catalog: Catalog): OwnPrompts {
  let listed: { revision: number; prompts: readonly Prompt[] } | undefined;
  return {
    async list() {
      const entries = await catalog.listed();
      if (listed?.revision !== catalog.revision)
        listed = { revision: catalog.revision, prompts: entries.filter(isPrompt).map(toPrompt) };
      return listed.prompts;
    },
    has: (name) => isPrompt(catalog.get(name)),
    async get(name, given) {
      if (!isTexts(given)) throw badParams("`arguments` must be an object of texts.");
      const entry = catalog.get(name);
      if (!isPrompt(entry)) throw badParams(`Prompt ${name} not found`);
      return await toMessage(entry, ownTexts(entry, name, given));
    },
  };
}

/** A server whose tools are commands here has prompts of its own, or none. */
export function isPrompt<T extends ListedEntry>(entry: T | undefined): entry is T {
  return entry !== undefined && entry.command.foreign === undefined;
}

function ownTexts(
  entry: CatalogEntry,
  name: string,
  given: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  try {
    return ownArguments(entry, name, given) as Record<string, string>;
  } catch (error) {
    throw badParams(messageOf(error));
  }
}

function isTexts(given: unknown): given is Readonly<Record<string, string>> {
  return (
    typeof given === "object" &&
    given !== null &&
    !Array.isArray(given) &&
    Object.values(given).every((value) => typeof value === "string")
  );
}

function toPrompt({ toolName, command }: ListedEntry): Prompt {
  const required = new Set((command.inputSchema.required ?? []) as string[]);
  const properties = Object.entries((command.inputSchema.properties ?? {}) as Record<string, JsonSchema>);
  return {
    name: toolName,
    description: command.summary,
    arguments: properties.map(([name, { description }]) => ({
      name,
      ...(typeof description === "string" && { description }),
      required: required.has(name),
    })),
  };
}

async function toMessage(
  { toolName, command }: CatalogEntry,
  given: Readonly<Record<string, string>>,
): Promise<Result> {
  const properties = (command.inputSchema.properties ?? {}) as Record<string, JsonSchema>;
  const missing = ((command.inputSchema.required ?? []) as string[]).filter((name) => !Object.hasOwn(given, name));
  if (missing.length > 0) throw badParams(`${toolName} needs ${missing.map((name) => `\`${name}\``).join(", ")}.`);
  const [{ accepts }, { openSchema }, { withParser }] = await Promise.all([
    import("../completion/schema-accepts.ts"),
    import("../completion/schema-branches.ts"),
    import("../completion/pattern-program.ts"),
  ]);
  const fits = (name: string, value: unknown) =>
    accepts(openSchema(command.inputSchema), properties[name] ?? true, value);
  const input = await withParser(() =>
    Object.fromEntries(
      Object.entries(given).map(([name, text]) => [name, fromText(text, (value) => fits(name, value))]),
    ),
  );
  const text =
    Object.keys(input).length === 0
      ? `Use the tool ${toolName}.`
      : `Use the tool ${toolName} with these arguments:\n${JSON.stringify(input, undefined, 2)}`;
  return { description: command.summary, messages: [{ role: "user", content: { type: "text", text } }] } as Result;
}

/**
 * Prompts know texts only; what the tool takes as a number, a truth or a structure, and not as a text, is written as
 * one.
 */
function fromText(text: string, fits: (value: unknown) => boolean): unknown {
  try {
    if (fits(text)) return text;
    const value: unknown = JSON.parse(text);
    return fits(value) ? value : text;
  } catch {
    return text;
  }
}
