import { isObject, type Json } from "../../../wire/json.ts";
import type { SurveyedTool } from "../../asking/facts.ts";
import { verdictOf } from "../../asking/protocol/raw-requests.ts";
import { type Check, type Fault, type Severity, skipped } from "../../check.ts";

const maxFaults = 10;
const hints = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"];

export const check: Check = {
  id: "protocol/tool-definitions",
  question: "Is every tool defined so that clients accept it?",
  severity: "blocker",
  why: "Clients check the whole list at once: one tool with a wrong definition and the official SDKs refuse all of them, so that the user sees a server without tools.",
  remedy:
    'Give every tool an inputSchema of { "type": "object", "properties": {…}, "required": […] }, texts for title and description, true or false for hints, and a name of letters, digits, _ - . with at most 128 characters.',
  source: "MCP 2025-11-25 and 2026-07-28, Tools: Tool, Tool Names; Tool of the schema",
  isStatic: true,
  async run(probe) {
    const { facts } = probe;
    if (facts.tools.length === 0) return skipped("The server has no tools.");
    const isOld = facts.modern === undefined;
    const faults = facts.tools.flatMap((tool): Fault[] => {
      const [problem] = [...problemsOf(tool.json, isOld), ...nameProblems(tool)];
      if (problem === undefined) return [];
      const name = probe.show(tool.name, 60);
      return [
        {
          subject: name,
          title: `The tool ${name} ${problem.what}`,
          severity: problem.severity,
          evidence: [probe.received(tool.json)],
        },
      ];
    });
    return verdictOf(faults.slice(0, maxFaults), `${facts.tools.length} tools.`);
  },
};

interface Problem {
  readonly what: string;
  readonly severity: Severity;
}

function problemsOf(json: Json, isOld: boolean): Problem[] {
  // A definition beyond 64 KiB was not kept.
  if (Object.keys(json).length === 1) return [];
  const { inputSchema, outputSchema, title, description, annotations } = json;
  const wrong = [
    ...schemaProblems("inputSchema", inputSchema, true),
    ...(outputSchema === undefined ? [] : schemaProblems("outputSchema", outputSchema, isOld)),
    title !== undefined && typeof title !== "string" && "has a title that is no text",
    description !== undefined && typeof description !== "string" && "has a description that is no text",
    annotations !== undefined && !isObject(annotations) && "has annotations that are no object",
    ...hints.map(
      (hint) =>
        isObject(annotations) &&
        ![undefined, true, false].includes(annotations[hint] as boolean) &&
        `has a ${hint} that is not true or false`,
    ),
  ];
  return wrong.filter((what) => what !== false).map((what) => ({ what, severity: "blocker" }));
}

/** Since 2026-07-28 outputs may be anything; inputs are always objects. */
function schemaProblems(field: string, schema: unknown, isObjectOnly: boolean): (string | false)[] {
  if (!isObject(schema)) return [`has no ${field} that is an object`];
  const { required, properties } = schema;
  const isList =
    required === undefined || (Array.isArray(required) && required.every((name) => typeof name === "string"));
  return [
    isObjectOnly && schema.type !== "object" && `has an ${field} whose type is not "object"`,
    properties !== undefined && !isObject(properties) && `has an ${field} whose properties are no object`,
    !isList && `has an ${field} whose required is no list of names`,
  ];
}

function nameProblems({ name }: SurveyedTool): Problem[] {
  if (/^[A-Za-z0-9_.-]{1,128}$/.test(name)) return [];
  return [
    { what: "has a name with other characters than letters, digits, _ - . or with more than 128", severity: "minor" },
  ];
}
