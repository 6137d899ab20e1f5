import { fieldsOf, type Json } from "../../../wire/json.ts";
import type { Callable } from "../../asking/callables.ts";
import { followMade, isMade, makeTask, noTool } from "../../asking/tasks/make-task.ts";
import { askEach, exchange, type Generation, type Judgement } from "../../asking/tasks/task-generation.ts";
import type { Check } from "../../check.ts";

const followMs = 4_000;

export const check: Check = {
  id: "tasks/failing",
  question: "Does a task that cannot succeed come to an end, and say so?",
  severity: "major",
  why: "A task whose work threw and was not caught stays `working` for ever: the client polls until its user gives up, and never learns what was wrong.",
  remedy:
    "Catch whatever the work throws and end the task: `failed` with the reason in statusMessage in 2025-11-25; in 2026-07-28 `completed` with an isError result for a tool's own failure, and `failed` with `error` only for an error of the protocol.",
  source: "MCP 2025-11-25, Tasks, Task Execution Errors; SEP-2663, Task Execution Errors.",
  limitMs: 20_000,
  run(probe) {
    const unless = (generation: Generation) =>
      noTool(probe, { toArguments: wrongArguments })(generation) &&
      "No tool that only reads can be called as a task with an argument of a wrong type.";
    return askEach(probe, { severity: "major", unless }, async (talk): Promise<Judgement> => {
      const made = await makeTask(talk, { toArguments: wrongArguments });
      if (!isMade(made)) return { problems: [], note: "arguments of a wrong type make no task." };
      const { end, answer } = await followMade(talk, made, followMs);
      const evidence = [
        probe.sent({ method: "tools/call", params: made.params }),
        ...exchange(talk, { method: "tasks/get" }, answer),
      ];
      if (end === "late")
        return { problems: [{ title: "A task that was given arguments of a wrong type does not end", evidence }] };
      const { status, error, result } = answer.result ?? {};
      if (talk.isModern && status === "failed" && fieldsOf(result).isError === true && error === undefined)
        return { problems: [{ title: "A tool's own failure ends a task as failed, without an error", evidence }] };
      return { problems: [] };
    });
  },
};

/**
 * The usual arguments with one of a wrong type; only for tools that say they only read, since nobody knows what others
 * do with it.
 */
function wrongArguments({ tool, arguments: usual }: Callable): Json | undefined {
  if (tool.annotations.readOnlyHint !== true) return undefined;
  const simple = Object.entries(fieldsOf(tool.inputSchema.properties)).find(([, schema]) =>
    ["string", "number", "integer", "boolean"].includes(String(fieldsOf(schema).type)),
  );
  return simple === undefined ? undefined : { ...usual, [simple[0]]: { not: "what was asked for" } };
}
