import type { DescribedCommand } from "../../command/command.ts";
import type { JsonSchema } from "../../command/schema.ts";
import { describeOff, type Parameter, readParameters, readValue } from "../arguments.ts";
import { commandFlags, helpFlag } from "../flags.ts";
import { type Flag, type Given, type Grammar, nothing, type OfferAt, toOffer } from "./grammar.ts";

/**
 * The words that may stand behind a command: its arguments, as usage.ts reads them, and the flags that every command
 * has.
 */
export function toCommandWords(command: DescribedCommand): Grammar {
  const parameters = readParameters(command.inputSchema, command.positional);
  const valuesOf = (parameter: Parameter): OfferAt => {
    return async (partial, given, { complete }) => {
      const { [parameter.name]: own, ...others } = toArguments(parameters, given);
      const known = parameter.isList && own !== undefined ? { ...others, [parameter.name]: own } : others;
      const hasCompleter = Object.hasOwn(command.complete, parameter.name);
      // An object is typed as JSON, and the engine would complete the names inside it.
      if (isObject(parameter) && command.complete[parameter.name] === undefined) return nothing;
      const suggestions = (await complete(command, { argument: parameter.name, partial, arguments: known })).filter(
        ({ value }) => isTypeable(value, parameter),
      );
      if (suggestions.length > 0 || hasCompleter) return toOffer(suggestions);
      return isAnyText(itemOf(parameter)) ? { kind: "files" } : nothing;
    };
  };
  return {
    flags: [
      ...parameters.flatMap((parameter) => toFlags(parameter, valuesOf(parameter))),
      ...commandFlags(command),
      helpFlag,
    ],
    operands: parameters
      .filter(({ place }) => place === "positional")
      .map((parameter) => ({ name: parameter.name, values: valuesOf(parameter), isList: parameter.isList })),
  };
}

function toFlags(parameter: Parameter, values: OfferAt): Flag[] {
  const { name, word, description, isList } = parameter;
  if (!parameter.isSwitch)
    return [
      { word: `--${word}`, name, description, values, isRepeatable: isList, isRare: parameter.place === "positional" },
    ];
  const isOn = parameter.defaultValue === true;
  return [
    { word: `--${word}`, name, description, isRare: isOn },
    { word: `--no-${word}`, name, description: describeOff(description), isRare: !isOn },
  ];
}

/** The words given so far, as the command would get them. */
function toArguments(parameters: readonly Parameter[], given: Given): Record<string, unknown> {
  const input: Record<string, unknown> = {};
  for (const parameter of parameters) {
    const words = given.get(parameter.name);
    if (words === undefined) continue;
    const read = words.map((word) => readValue(word, itemOf(parameter)));
    input[parameter.name] = parameter.isList ? read : read.at(-1);
  }
  return input;
}

function itemOf(parameter: Parameter): JsonSchema {
  return parameter.isList ? ((parameter.schema.items ?? {}) as JsonSchema) : parameter.schema;
}

function isObject(parameter: Parameter): boolean {
  const item = itemOf(parameter);
  return parameter.valueWord === "json" || item.properties !== undefined || [item.type].flat().includes("object");
}

/** There is no way to type null. */
function isTypeable(value: string, parameter: Parameter): boolean {
  const { enum: listed } = itemOf(parameter);
  return value !== "null" || (Array.isArray(listed) && listed.includes("null"));
}

/** Nothing says what the text is, so it may well be the name of a file. */
function isAnyText(schema: JsonSchema): boolean {
  const alternatives = (schema.anyOf ?? schema.oneOf) as readonly JsonSchema[] | undefined;
  if (alternatives !== undefined) return alternatives.some(isAnyText);
  const isText = schema.type === undefined || [schema.type].flat().includes("string");
  return isText && ["enum", "const", "pattern", "format", "$ref"].every((keyword) => schema[keyword] === undefined);
}
