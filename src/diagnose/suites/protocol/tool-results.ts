import { isObject, type Json, textOf } from "../../../wire/json.ts";
import type { Callable } from "../../asking/callables.ts";
import { misfit } from "../../asking/protocol/fits.ts";
import { verdictOf } from "../../asking/protocol/raw-requests.ts";
import { type Check, type Fault, skipped } from "../../check.ts";

const maxCalls = 3;

export const check: Check = {
  id: "protocol/tool-results",
  question: "Do tools answer with content that clients can read, and with what their outputSchema promises?",
  severity: "major",
  why: "The tool has done its work, but the client refuses the answer: content of an unknown form, or structured content that breaks its own schema, is an error in the official SDKs.",
  remedy:
    'Return content as a list of blocks like { "type": "text", "text": "…" }. Where a tool has an outputSchema, return structuredContent that fits it, or isError: true.',
  source: "MCP 2025-11-25 and 2026-07-28, Tools: Tool Result, Output Schema",
  isGentle: true,
  async run(probe) {
    const callables = probe.callables.filter(({ tool }) => tool.taskSupport !== "required");
    if (callables.length === 0) return skipped("No tool says that it only reads; name one with --tool.");
    // Those that promise a form first: they have more to get wrong.
    const chosen = [...callables]
      .sort((one, other) => Number(hasOutput(other)) - Number(hasOutput(one)))
      .slice(0, maxCalls);
    const session = await probe.open({ capabilities: {} });
    const faults: Fault[] = [];
    let answered = 0;
    for (const { tool, arguments: args } of chosen) {
      const { result } = await session.request(
        "tools/call",
        { name: tool.name, arguments: args },
        { timeoutMs: Math.min(probe.requestMs, 2_500) },
      );
      // Errors may be due to the arguments, which are made up; questions are answered elsewhere.
      if (result === undefined || result.resultType === "input_required" || result.resultType === "task") continue;
      answered++;
      const problem = contentProblem(result) ?? outputProblem(tool.json.outputSchema, result, session.isModern);
      const name = probe.show(tool.name, 60);
      if (problem !== undefined)
        faults.push({
          subject: name,
          title: `The result of ${name} is not valid: ${probe.show(problem, 120)}`,
          evidence: [probe.received(result)],
        });
    }
    if (answered === 0) return skipped("No tool that may be called gave a result.");
    return verdictOf(faults);
  },
};

function hasOutput({ tool }: Callable): boolean {
  return tool.json.outputSchema !== undefined;
}

function contentProblem({ content, isError }: Json): string | undefined {
  if (isError !== undefined && typeof isError !== "boolean") return "isError is not true or false";
  if (!Array.isArray(content)) return "content is no list";
  return content.slice(0, 100).some((block) => !isBlock(block))
    ? "content holds a block of an unknown form"
    : undefined;
}

function isBlock(block: unknown): boolean {
  if (!isObject(block)) return false;
  const has = (...fields: string[]) => fields.every((field) => textOf(block[field]) !== undefined);
  switch (block.type) {
    case "text":
      return has("text");
    case "image":
    case "audio":
      return has("data", "mimeType");
    case "resource_link":
      return has("uri", "name");
    case "resource":
      return (
        isObject(block.resource) &&
        textOf(block.resource.uri) !== undefined &&
        (textOf(block.resource.text) ?? textOf(block.resource.blob)) !== undefined
      );
    default:
      return false;
  }
}

function outputProblem(schema: unknown, { structuredContent, isError }: Json, isModern: boolean): string | undefined {
  if (structuredContent !== undefined && !isModern && !isObject(structuredContent))
    return "structuredContent is no object";
  if (schema === undefined || isError === true) return undefined;
  if (structuredContent === undefined) return "it has an outputSchema, but no structuredContent came";
  return misfit(schema, structuredContent);
}
