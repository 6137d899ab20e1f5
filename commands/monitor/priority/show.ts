import { defineCommand } from "meanwhile";
import { z } from "zod";
import { showName } from "../../_pack/paths.ts";
import { readPriorities } from "../_priority.ts";
import { withMonitor } from "../_schema.ts";

export default defineCommand({
  summary: "Show which folders count for how much",
  description:
    "A file's score is the number of the nearest folder here, × 0.9 for each folder further down and × 0.5 for each underscore a name begins with; 0 outside all of them.",
  output: z.object({ priorities: z.array(z.object({ path: z.string(), priority: z.number() })) }),
  effects: "read",
  summarize: ({ priorities }) => `${priorities.length} folders have a priority`,
  run(_input, task) {
    return withMonitor(task.home, (db) => ({ priorities: readPriorities(db).map(({ path, priority }) => ({ path: showName(path), priority })) }));
  },
});
