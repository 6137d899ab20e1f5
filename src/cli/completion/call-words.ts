import type { DescribedCommand, Suggestion } from "../../command/command.ts";
import { revisions } from "../../wire/revisions.ts";
import { type Parameter, readValue, toParameters } from "../arguments.ts";
import type { Complete } from "./command-words.ts";
import { choices, type Flag, type Given, nothing, type Operand, toOffer, unknown } from "./grammar.ts";

/** The tools of this project's own server, known without starting it. */
export interface OwnTools {
  list(): Promise<readonly Suggestion[]>;
  describe(toolName: string): Promise<DescribedCommand | undefined>;
  readonly complete: Complete;
}

export const targets = choices(".", "http://", "https://", "unix:/");

/** How a target is reached; the same wherever one is. */
export const reachFlags: readonly Flag[] = [
  {
    word: "--header",
    description: "'Name: value', sent with every request; may be given several times",
    values: unknown,
    isRepeatable: true,
  },
  { word: "--token-env", description: "the environment variable that holds the bearer token", values: unknown },
  {
    word: "--revision",
    description: "speak this revision of the protocol and no other, e.g. 2025-11-25",
    values: choices(...revisions),
  },
];

/** `<target> <tool> [key=value …]`. Other servers are not asked for the sake of a key that was pressed. */
export function toCallOperands(tools: OwnTools): Operand[] {
  const isOwn = (given: Given) => given.get("target")?.[0] === ".";
  return [
    { name: "target", values: targets },
    { name: "tool", values: async (_, given) => (isOwn(given) ? toOffer(await tools.list()) : nothing) },
    {
      name: "arguments",
      isList: true,
      values: async (typed, given) => {
        const command = isOwn(given) ? await tools.describe(given.get("tool")?.[0] ?? "") : undefined;
        return command === undefined
          ? nothing
          : toOffer(
              await completePair(command, typed, { pairs: given.get("arguments") ?? [], complete: tools.complete }),
            );
      },
    },
  ];
}

interface Typed {
  readonly pairs: readonly string[];
  readonly complete: Complete;
}

/** The names that are left, or the values of the one that stands before the `=`. */
async function completePair(
  command: DescribedCommand,
  typed: string,
  { pairs, complete }: Typed,
): Promise<Suggestion[]> {
  const parameters = toParameters(command.inputSchema);
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
