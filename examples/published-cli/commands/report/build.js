import { setTimeout as pause } from "node:timers/promises";
import { defineCommand } from "meanwhile";
import { z } from "zod";

export default defineCommand({
  summary: "Build the report of a quarter",
  input: z.object({
    quarter: z.enum(["Q1", "Q2", "Q3"]).describe("Which quarter"),
    format: z.enum(["pdf", "html"]).default("pdf").describe("Output format"),
    pages: z.number().int().min(1).max(1000).default(20).describe("How many pages"),
  }),
  output: z.object({ file: z.string(), pages: z.number() }),
  estimate: ({ pages }) => pages / 10,
  examples: ["Q3 --format html"],
  async run({ quarter, format, pages }, task) {
    task.announce(`Building ${quarter}`);
    for (let page = 1; page <= pages; page++) {
      await pause(100, undefined, { signal: task.signal });
      task.progress({ done: page, total: pages, message: `Page ${page} of ${pages}` });
    }
    return { file: `${quarter.toLowerCase()}.${format}`, pages };
  },
});
