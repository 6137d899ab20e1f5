import type { Json } from "../../wire/json.ts";
import type { ToolToCall } from "../diagnosis-target.ts";
import type { SurveyedTool } from "./facts.ts";
import { sampleArguments } from "./sample-arguments.ts";

/** A tool that may be called, and with what. */
export interface Callable {
  readonly tool: SurveyedTool;
  readonly arguments: Json;
  /** The user named it; else it says that it only reads. */
  readonly isNamed: boolean;
}

/** Tools that the user named, then those that say they only read; only such that arguments are known for. */
export function findCallables(tools: readonly SurveyedTool[], named: readonly ToolToCall[]): Callable[] {
  const asked = named.flatMap(({ name, arguments: given }): Callable[] => {
    const tool = tools.find((one) => one.name === name);
    const args = given ?? (tool === undefined ? undefined : sampleArguments(tool.inputSchema));
    return tool === undefined || args === undefined ? [] : [{ tool, arguments: args, isNamed: true }];
  });
  const reading = tools.flatMap((tool): Callable[] => {
    const isSafe = tool.annotations.readOnlyHint === true && tool.annotations.destructiveHint !== true;
    const args =
      isSafe && !named.some(({ name }) => name === tool.name) ? sampleArguments(tool.inputSchema) : undefined;
    return args === undefined ? [] : [{ tool, arguments: args, isNamed: false }];
  });
  return [...asked, ...reading];
}
