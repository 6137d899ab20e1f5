import { describe, expect, test } from "vitest";
import type { Callable } from "../../../src/diagnose/asking/callables.ts";
import { type CalledTool, CallLog, tellNamedFailures } from "../../../src/diagnose/asking/tool-calls.ts";
import { whyUngraded } from "../../../src/diagnose/report/score.ts";
import type { ProbeAnswer } from "../../../src/diagnose/wire/probe-session.ts";

const callable = (name: string, isNamed = false): Callable => ({
  tool: { name, description: "", inputSchema: {}, annotations: {}, taskSupport: undefined, json: { name } },
  arguments: { page: 1 },
  isNamed,
});
const callables = [callable("print", true), callable("read")];
const answered = (result: Record<string, unknown>): ProbeAnswer => ({
  message: { id: 1, result },
  result,
  error: undefined,
  elapsedMs: 1,
});
const refused = (code: number, message: string): ProbeAnswer => ({
  message: { id: 1 },
  result: undefined,
  error: { code, message },
  elapsedMs: 1,
});
const late: ProbeAnswer = {
  message: undefined,
  result: undefined,
  error: undefined,
  problem: "no answer within 100 ms",
  elapsedMs: 100,
};
const text = (words: string) => ({ content: [{ type: "text", text: words }] });

/** What is kept of calls of `print`, in order. */
function logged(
  ...steps: [method: string, params: Record<string, unknown>, answer: ProbeAnswer, isCancelled?: boolean][]
): string[] {
  const told: CalledTool[] = [];
  const log = new CallLog((call) => told.push(call));
  for (const [method, params, answer, isCancelled = false] of steps)
    log.note({ method, params, answer, isCancelled }, callables, (words) => words);
  return told.map(({ tool, outcome, note }) => `${tool} ${outcome}${note === undefined ? "" : `: ${note}`}`);
}
const print = { name: "print", arguments: { page: 1 } };

describe("the best that became of a tool's calls is kept", () => {
  test("a success counts more than any failure, before or after it", () => {
    const fails = refused(-32603, "no ink");
    expect(
      logged(
        ["tools/call", print, fails],
        ["tools/call", print, answered(text("Done."))],
        ["tools/call", print, fails],
      ),
    ).toEqual(["print failed: error -32603: no ink", "print succeeded"]);
  });

  test("an error text is a failure, a late answer or one we cancelled says nothing", () => {
    expect(logged(["tools/call", print, answered(text("Error: no ink"))], ["tools/call", print, late])).toEqual([
      "print failed: Error: no ink",
      "print unanswered: no answer within 100 ms",
    ]);
    expect(logged(["tools/call", print, refused(-32000, "cancelled"), true])).toEqual(["print unanswered"]);
  });

  test("calls that are wrong on purpose, and other tools, do not count", () => {
    expect(
      logged(
        ["tools/call", { name: "print", arguments: { page: { wrong: [] } } }, refused(-32602, "no")],
        ["tools/call", { name: "none" }, answered({})],
      ),
    ).toEqual([]);
  });

  test("a task is one until its end is seen", () => {
    const made = answered({ task: { taskId: "t1", status: "working" } });
    const modern = answered({ resultType: "task", taskId: "t2", status: "working" });
    expect(logged(["tools/call", print, made], ["tasks/result", { taskId: "t1" }, answered(text("Done."))])).toEqual([
      "print task",
      "print succeeded",
    ]);
    expect(
      logged(
        ["tools/call", print, modern],
        ["tasks/get", { taskId: "t2" }, answered({ status: "completed", result: text("Done.") })],
      ),
    ).toEqual(["print task", "print succeeded"]);
    expect(
      logged(
        ["tools/call", print, modern],
        ["tasks/get", { taskId: "t2" }, answered({ status: "failed", statusMessage: "no ink" })],
      ),
    ).toEqual(["print task", "print failed: no ink"]);
    expect(logged(["tasks/get", { taskId: "other" }, answered({ status: "completed" })])).toEqual([]);
  });
});

describe("why there is no grade", () => {
  const call = (outcome: CalledTool["outcome"], note?: string): CalledTool => ({
    tool: "print",
    isNamed: true,
    outcome,
    ...(note !== undefined && { note }),
  });

  test.each([
    [0, [], "The server lists no tools, so nothing could be called and there is no grade."],
    [2, [], "No tool was called, so there is no grade: none says that it only reads"],
    [2, [call("not called")], "No tool was called, so there is no grade"],
    [
      2,
      [call("failed", "Error: no ink")],
      "The one tool that was called did not succeed, so there is no grade: print failed (Error: no ink); make one work",
    ],
    [
      2,
      [call("unanswered"), call("failed", "no ink")],
      "None of the 2 tools that were called succeeded, so there is no grade: print failed (no ink)",
    ],
    [2, [call("unanswered", "no answer within 5 s")], "print had not ended (no answer within 5 s)"],
  ] as const)("%i tools, %j", (tools, calls, why) => {
    expect(whyUngraded(tools, calls)).toContain(why);
  });

  test.each(["succeeded", "task"] as const)("there is one where a call %s", (outcome) => {
    expect(whyUngraded(2, [call("failed"), call(outcome)])).toBeUndefined();
  });

  test("a call that the user named and that brought nothing is told", () => {
    expect(
      tellNamedFailures([call("failed", "Error: no ink."), { ...call("failed"), tool: "read", isNamed: false }]),
    ).toBe("print, which you named, failed: Error: no ink.");
    expect(tellNamedFailures([call("succeeded"), call("unanswered"), call("task")])).toBeUndefined();
  });
});
