import { defineCommand } from "meanwhile";
import { z } from "zod";
import { folderOf, nameOf, realPathOf, showName } from "../_pack/paths.ts";
import { openReach } from "../_pack/reach.ts";
import { createDecider, type Decision } from "./_decide.ts";
import { readFilters } from "./_filters.ts";
import { nearestRule, priorityIn, readScoring } from "./_priority.ts";
import { withMonitor } from "./_schema.ts";
import { Tracked, toKey } from "./_tracked.ts";

/** Sockets, pipes and devices are passed over, whatever the filter says. */
const notRegular: Decision = {
  isMonitored: false,
  reason: "it is not a regular file",
  steps: [{ symbol: "✗", message: "it is not a regular file" }],
};

export default defineCommand({
  summary: "Say whether a file is monitored, and why, step by step",
  description:
    "Looks at the filter and the priorities as they are now; reads no file. Use it when a file is missing from the monitor, or should be.",
  input: z.object({ path: z.string().describe("The file, e.g. ~/notes/todo.md; it need not exist") }),
  output: z.object({
    path: z.string(),
    exists: z.boolean(),
    is_monitored: z.boolean(),
    is_tracked: z.boolean(),
    reason: z.string(),
    priority: z.number(),
    decisions: z.array(z.object({ symbol: z.enum(["✓", "✗", "·"]), message: z.string() })),
  }),
  effects: "read",
  examples: ["~/notes/todo.md"],
  summarize: ({ is_monitored, reason }) => `${is_monitored ? "Monitored" : "Not monitored"}: ${reason}`,
  run({ path }, task) {
    const given = openReach(task).resolve(path);
    return withMonitor(task.home, (db) => {
      const decider = createDecider(readFilters(db), realPathOf(Buffer.from(task.home)));
      const explained = given.kind === "other" ? notRegular : decider.explain(given.path);
      const folder = folderOf(given.path);
      const scoring = readScoring(db);
      const rule = nearestRule(folder, scoring.rules);
      const priority = priorityIn(folder, scoring)(nameOf(given.path));
      const decision = explained.isMonitored
        ? withMinimum(explained, priority, scoring.settings.minimum_priority)
        : explained;
      const tracked = new Tracked(db);
      const id = tracked.folderId(folder);
      return {
        path: given.shown,
        exists: given.kind !== "missing",
        is_monitored: decision.isMonitored,
        is_tracked: id !== undefined && tracked.statesIn(id).has(toKey(nameOf(given.path))),
        reason: decision.reason,
        priority,
        decisions: [
          ...decision.steps,
          {
            symbol: "·" as const,
            message:
              rule === undefined
                ? "no priority holds it"
                : `priority ${priority}, from ${rule.priority} of ${showName(rule.path)}`,
          },
        ],
      };
    });
  },
});

/** A file that scores too little is not recorded, whatever the filter says. */
function withMinimum(decision: Decision, priority: number, minimum: number): Decision {
  if (priority >= minimum) return decision;
  const reason = `its score ${priority} is below minimum_priority ${minimum}`;
  return { isMonitored: false, reason, steps: [...decision.steps, { symbol: "✗", message: reason }] };
}
