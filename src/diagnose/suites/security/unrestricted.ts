import { failed, passed, skipped, type Verdict } from "../../check.ts";
import type { Probe } from "../../probe.ts";
import { isObject, type Json, listOf } from "../../wire/json.ts";
import { argumentsOf } from "./texts.ts";

/** Looks for arguments with such a name that take any text. One finding for all tools: it is the same habit in each. */
export function judgeArguments(probe: Probe, names: RegExp, kind: string): Verdict {
  const { tools } = probe.facts;
  if (tools.length === 0) return skipped("The server has no tools.");
  const open = tools.flatMap(({ name, inputSchema }) => {
    const found = argumentsOf(inputSchema).filter((argument) => names.test(argument.name) && isUnrestricted(argument.schema));
    return found.length === 0 ? [] : [`${probe.show(name, 80)} (${probe.show([...new Set(found.map((argument) => argument.name))].join(", "), 80)})`];
  });
  if (open.length === 0) return passed();
  const title = open.length === 1 ? `${open[0]} takes any text as ${kind}` : `${open.length} tools take any text as ${kind}`;
  return failed({ title, evidence: [probe.received(`in the schemas of ${open.slice(0, 40).join(", ")}: no pattern, format or enum`)] });
}

/** Any text will do: nothing in the schema says what it has to look like. */
function isUnrestricted(schema: Json): boolean {
  const choices = [...listOf(schema.anyOf), ...listOf(schema.oneOf)].filter(isObject);
  if (choices.length > 0) return choices.some(isUnrestricted);
  const takesText = schema.type === "string" || listOf(schema.type).includes("string");
  return takesText && ["pattern", "format", "enum", "const", "not", "allOf", "$ref"].every((word) => schema[word] === undefined);
}
