import { setTimeout as sleep } from "node:timers/promises";
import { defineCommand } from "meanwhile";
import { z } from "zod";

export default defineCommand({
  summary: "Build the quarterly report",
  input: z.object({
    quarter: z.string().describe("Which quarter, e.g. Q3"),
    format: z.enum(["pdf", "html"]).default("pdf").describe("Output format"),
  }),
  output: z.object({ pages: z.number(), file: z.string() }),
  idempotent: true, // may run again after a crash
  async run({ quarter, format }, task) {
    task.announce(`Building ${quarter}`);
    for (let page = 1; page <= 4; page++) {
      await sleep(500, undefined, { signal: task.signal });
      task.progress({ done: page, total: 4, message: `Page ${page} of 4` });
    }
    return { pages: 4, file: `${quarter.toLowerCase()}.${format}` };
  },
});
