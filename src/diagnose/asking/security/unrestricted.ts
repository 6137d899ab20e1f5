import { isObject, type Json, listOf } from "../../../wire/json.ts";
import { type Fault, failed, passed, skipped, type Verdict } from "../../check.ts";
import type { Probe } from "../probe.ts";
import { argumentsOf } from "./texts.ts";

/** Looks for arguments with such a name that take any text. One finding for all tools: it is the same habit in each. */
export function judgeArguments(probe: Probe, names: RegExp, kind: string): Verdict {
  const { tools } = probe.facts;
  if (tools.length === 0) return skipped("The server has no tools.");
  const open = tools.flatMap(({ name, inputSchema }): [string, string[]][] => {
    const found = argumentsOf(inputSchema).filter(
      (argument) => names.test(argument.name) && isUnrestricted(argument.schema),
    );
    return found.length === 0 ? [] : [[name, [...new Set(found.map((argument) => argument.name))]]];
  });
  const faults = judgeOpen(probe, open, kind);
  return faults.length === 0 ? passed() : failed(faults);
}

/** The finding about tools and those of their arguments that take any text; none where there are none. */
export function judgeOpen(
  probe: Probe,
  open: readonly (readonly [tool: string, names: readonly string[]])[],
  kind: string,
): Fault[] {
  if (open.length === 0) return [];
  const told = open.map(([tool, names]) => `${probe.show(tool, 80)} (${probe.show(names.join(", "), 80)})`);
  const title =
    told.length === 1 ? `${told[0]} takes any text as ${kind}` : `${told.length} tools take any text as ${kind}`;
  return [
    {
      title,
      evidence: [probe.received(`in the schemas of ${told.slice(0, 40).join(", ")}: no pattern, format or enum`)],
    },
  ];
}

/** Any text will do: nothing in the schema says what it has to look like. */
export function isUnrestricted(schema: Json): boolean {
  const choices = [...listOf(schema.anyOf), ...listOf(schema.oneOf)].filter(isObject);
  if (choices.length > 0) return choices.some(isUnrestricted);
  const takesText = schema.type === "string" || listOf(schema.type).includes("string");
  return (
    takesText &&
    ["pattern", "format", "enum", "const", "not", "allOf", "$ref"].every((word) => schema[word] === undefined)
  );
}
