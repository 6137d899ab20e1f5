import { defineCommand } from "meanwhile";
import { z } from "zod";
import { writeAtOnce } from "../../_pack/database.ts";
import { openReach } from "../../_pack/reach.ts";
import { checkFilterValue, filterLists, listDescription, readFilters } from "../_filters.ts";
import { withMonitor } from "../_schema.ts";

export default defineCommand({
  summary: "Add a folder, a folder's name or a pattern to a list of the filter",
  description: `The lists: ${listDescription}. The next sync of a folder goes by it.`,
  input: z.object({
    list: z.enum(filterLists).describe("Which list"),
    value: z.string().describe("A path, the name of a folder, or a pattern such as *.log"),
  }),
  output: z.object({
    list: z.enum(filterLists),
    value_stored: z.string(),
    already_exists: z.boolean(),
  }),
  effects: "write",
  idempotent: true,
  examples: ["exclude_dirnames build", "exclude_globs '*.log'", "include_paths ~/notes"],
  summarize: ({ list, value_stored, already_exists }) =>
    `${value_stored} ${already_exists ? "was already" : "is now"} in ${list}`,
  run({ list, value }, task) {
    return withMonitor(task.home, (db) => {
      const stored = checkFilterValue(list, value, { others: readFilters(db), reach: openReach(task) });
      const { changes } = writeAtOnce(db, () =>
        db.prepare("insert or ignore into monitor_filter_settings (list, value) values (?, ?)").run(list, stored),
      );
      return { list, value_stored: stored, already_exists: changes === 0 };
    });
  },
});
