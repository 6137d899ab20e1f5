import { defineCommand } from "meanwhile";
import { z } from "zod";
import { showName } from "../../_pack/paths.ts";
import { readScoring } from "../_priority.ts";
import { withMonitor } from "../_schema.ts";

export default defineCommand({
  summary: "Show which folders count for how much, and how scores are made",
  description:
    "A file's score is the number of the nearest folder here, × folder_factor for each folder further down, × underscore_factor for each underscore a name begins with, × the weight of its ending; 0 outside all of them.",
  output: z.object({
    priorities: z.array(z.object({ path: z.string(), priority: z.number() })),
    settings: z.object({
      folder_factor: z.number(),
      underscore_factor: z.number(),
      only_underscore_factor: z.number(),
      minimum_priority: z.number(),
      maximum_files: z.number(),
    }),
    endings: z.array(z.object({ ending: z.string(), weight: z.number() })),
  }),
  effects: "read",
  summarize: ({ priorities }) => `${priorities.length} folders have a priority`,
  run(_input, task) {
    return withMonitor(task.home, (db) => {
      const { rules, settings, weights } = readScoring(db);
      return {
        priorities: rules.map(({ path, priority }) => ({ path: showName(path), priority })),
        settings,
        endings: [...weights].map(([ending, weight]) => ({ ending, weight })),
      };
    });
  },
});
