import { defineCommand } from "meanwhile";
import { z } from "zod";
import { writeAtOnce } from "../../_pack/database.ts";
import { showName } from "../../_pack/paths.ts";
import { openReach } from "../../_pack/reach.ts";
import { filterLists } from "../_filters.ts";
import { withMonitor } from "../_schema.ts";

export default defineCommand({
  summary: "Take a value off a list of the filter",
  description: "`monitor filter show` has the lists and their values. The next sync of a folder goes by it.",
  input: z.object({
    list: z.enum(filterLists).describe("Which list"),
    value: z.string().describe("The value, as `monitor filter show` shows it"),
  }),
  output: z.object({
    list: z.enum(filterLists),
    value_removed: z.string(),
    not_found: z.boolean(),
  }),
  effects: "write",
  idempotent: true,
  examples: ["exclude_dirnames node_modules"],
  summarize: ({ list, value_removed, not_found }) =>
    not_found ? `${value_removed} was not in ${list}` : `${value_removed} is no longer in ${list}`,
  run({ list, value }, task) {
    return withMonitor(task.home, (db) => {
      const remove = db.prepare("delete from monitor_filter_settings where list = ? and value in (?, ?)");
      const { changes } = writeAtOnce(db, () =>
        remove.run(list, value, list.endsWith("_paths") ? showName(openReach(task).locate(value, "value")) : value),
      );
      return { list, value_removed: value, not_found: changes === 0 };
    });
  },
});
