import { numberOf } from "../../../wire/json.ts";
import { nothingSaid, nothingToCall, paramsOf, progressOf, recordCalls } from "../../asking/progress/watched-calls.ts";
import { type Check, failed, passed, skipped } from "../../check.ts";

export const check: Check = {
  id: "progress/shape",
  question: "Is progress made of a number, a number and a text?",
  severity: "major",
  why: "SDK clients drop a notification with a field of a wrong type: nothing is shown, and clocks that progress would reset run on until they cut the call.",
  remedy:
    "Send `progress` as a finite number, `total` as a number or not at all, and `message` as a text or not at all; never null.",
  source: "MCP 2025-11-25, Progress, and its schema; MCP 2026-07-28, Progress.",
  limitMs: 20_000,
  async run(probe) {
    const recording = await recordCalls(probe);
    if (recording === undefined) return skipped(nothingToCall);
    if (progressOf(recording).length === 0) return skipped(nothingSaid);
    for (const { message } of progressOf(recording)) {
      const { progress, total, message: text } = paramsOf(message);
      const evidence = [probe.received(message)];
      if (numberOf(progress) === undefined) return failed({ title: "progress is no number", evidence });
      if (total !== undefined && numberOf(total) === undefined)
        return failed({ title: "The total of progress is no number", evidence });
      if (text !== undefined && typeof text !== "string")
        return failed({ title: "The message of progress is no text", evidence });
    }
    return passed();
  },
};
