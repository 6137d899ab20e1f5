import { defineCommand } from "meanwhile";
import { z } from "zod";
import { filterLists, listDescription, readFilters } from "../_filters.ts";
import { withMonitor } from "../_schema.ts";

export default defineCommand({
  summary: "Show which files the monitor leaves out or lets in",
  description: `The six lists of the filter: ${listDescription}.`,
  input: z.object({
    list: z
      .enum(["all", ...filterLists])
      .default("all")
      .describe("Only this list"),
  }),
  output: z.object({
    filters: z.array(z.object({ list: z.enum(filterLists), values: z.array(z.string()) })),
  }),
  effects: "read",
  positional: ["list"],
  examples: ["", "exclude_globs"],
  summarize: ({ filters }) => `${filters.flatMap(({ values }) => values).length} values`,
  run({ list }, task) {
    return withMonitor(task.home, (db) => {
      const filters = readFilters(db);
      return {
        filters: (list === "all" ? filterLists : [list]).map((name) => ({ list: name, values: [...filters[name]] })),
      };
    });
  },
});
