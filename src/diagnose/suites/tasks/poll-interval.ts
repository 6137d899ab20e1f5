import { fieldNames, pollMsOf } from "../../asking/tasks/created-task.ts";
import { askMade } from "../../asking/tasks/make-task.ts";
import { exchange, type Judgement } from "../../asking/tasks/task-generation.ts";
import type { Check } from "../../check.ts";

const minMs = 50;
const maxMs = 5 * 60_000;

export const check: Check = {
  id: "tasks/poll-interval",
  question: "Does a task ask to be polled at a sensible pace?",
  severity: "minor",
  why: "Clients keep to it: with next to nothing they ask without a pause and load both sides, with many minutes a user waits that long for a result that is there.",
  remedy:
    "Give a pollInterval (pollIntervalMs in 2026-07-28) between half a second and a few seconds; a twentieth of the expected run time is a good one.",
  source: "MCP 2025-11-25, Tasks, TTL and Resource Management; SEP-2663, Task Polling.",
  isThorough: true,
  isGentle: true,
  run: (probe) =>
    askMade(probe, { severity: "minor" }, async (talk, made): Promise<Judgement> => {
      const field = fieldNames[talk.generation].poll;
      const pollMs = pollMsOf(talk.generation, made.task);
      if (pollMs === undefined) return { problems: [], note: `the task has no ${field}, so clients use their own.` };
      const evidence = exchange(talk, { method: "tools/call", params: made.params }, made.answer);
      if (pollMs < minMs)
        return { problems: [{ title: `${field} is so short that clients ask without a pause`, evidence }] };
      if (pollMs > maxMs) return { problems: [{ title: `${field} is longer than five minutes`, evidence }] };
      return { problems: [] };
    }),
};
