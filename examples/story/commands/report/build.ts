import { appendFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { defineCommand } from "meanwhile";
import { z } from "zod";

export default defineCommand({
  summary: "Build a report, page by page",
  input: z.object({
    quarter: z.string().describe("Which quarter, e.g. Q3"),
    pages: z.number().int().positive().default(12),
    secondsPerPage: z.number().positive().default(2),
    journal: z.string().describe("A file that gets a line for each page that is made"),
  }),
  output: z.object({ pages: z.number(), file: z.string() }),
  long: true,
  idempotent: true,
  estimate: ({ pages, secondsPerPage }) => pages * secondsPerPage,
  async run({ quarter, pages, secondsPerPage, journal }, task) {
    for (let page = 1; page <= pages; page++) {
      // A finished page is remembered: after a crash the next run begins where this one was.
      await task.step(`page ${page}`, async () => {
        await sleep(secondsPerPage * 1000, undefined, { signal: task.signal });
        await appendFile(journal, `page ${page}\n`);
      });
      task.progress({ done: page, total: pages, message: `Page ${page} of ${pages}` });
    }
    return { pages, file: `${quarter.toLowerCase()}.pdf` };
  },
});
