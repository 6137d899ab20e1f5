import type { DescribedCommand, Suggestion } from "../../command/command.ts";
import { type Parameter, readParameters, readValue } from "../arguments.ts";
import { type Given, type KnownValues, nothing, type OfferAt, toOffer } from "./grammar.ts";

/** Other servers are not asked for the sake of a key that was pressed. */
const isOwn = (given: Given) => given.get("target")?.[0] === ".";

/** The tools of the target. */
export const toolNames: OfferAt = async (_, given, { tools }) => (isOwn(given) ? toOffer(await tools.list()) : nothing);

/** `key=value` for a tool of the target. */
export const toolArguments: OfferAt = async (typed, given, { tools, complete }) => {
  const command = isOwn(given) ? await tools.describe(given.get("tool")?.[0] ?? "") : undefined;
  if (command === undefined) return nothing;
  return toOffer(await completePair(command, typed, { pairs: given.get("arguments") ?? [], complete }));
};

interface Pairs {
  readonly pairs: readonly string[];
  readonly complete: KnownValues["complete"];
}

/** The names that are left, or the values of the one that stands before the `=`. */
async function completePair(
  command: DescribedCommand,
  typed: string,
  { pairs, complete }: Pairs,
): Promise<Suggestion[]> {
  const parameters = readParameters(command.inputSchema);
  const given = toGiven(parameters, pairs);
  const [, key, partial = ""] = /^([^=]+)=(.*)$/s.exec(typed) ?? [];
  if (key === undefined)
    return parameters
      .filter(({ name, isList }) => isList || !Object.hasOwn(given, name))
      .map(({ name, description }) => ({ value: `${name}=`, description }));
  const parameter = parameters.find(({ name }) => name === key);
  // An object is typed as JSON, and the engine would complete the names inside it.
  if (parameter === undefined || parameter.valueWord === "json") return [];
  const suggestions = await complete(command, { argument: key, partial, arguments: given });
  return suggestions
    .filter(({ value }) => value !== "null")
    .map((suggestion) => ({ ...suggestion, value: `${key}=${suggestion.value}` }));
}

function toGiven(parameters: readonly Parameter[], pairs: readonly string[]): Record<string, unknown> {
  const given: Record<string, unknown> = {};
  for (const pair of pairs) {
    const [, key = "", value = ""] = /^([^=]+)=(.*)$/s.exec(pair) ?? [];
    const parameter = parameters.find(({ name }) => name === key);
    if (parameter === undefined) continue;
    const read = readValue(
      value,
      (parameter.isList ? (parameter.schema.items ?? {}) : parameter.schema) as Parameter["schema"],
    );
    given[key] = parameter.isList ? [...((given[key] as unknown[] | undefined) ?? []), read] : read;
  }
  return given;
}
