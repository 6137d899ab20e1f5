/** The command that a new project begins with, and its test. */

export const firstCommand = `import { setTimeout as sleep } from "node:timers/promises";
import { defineCommand } from "meanwhile";
import { z } from "zod";

export default defineCommand({
  summary: "Build the quarterly report",
  input: z.object({
    quarter: z.enum(["Q1", "Q2", "Q3", "Q4"]).describe("Which quarter"),
    pages: z.number().int().min(1).max(1000).default(4).describe("How many pages"),
  }),
  output: z.object({ title: z.string(), pages: z.number() }),
  effects: "read", // changes nothing, so it may run again after a crash
  async run({ quarter, pages }, task) {
    task.announce(\`Building \${quarter}\`);
    for (let page = 1; page <= pages; page++) {
      // Your work goes here, and may take hours; the signal ends it when somebody cancels.
      await sleep(250, undefined, { signal: task.signal });
      task.progress({ done: page, total: pages, message: \`Page \${page} of \${pages}\` });
    }
    return { title: \`Report of \${quarter}\`, pages };
  },
});
`;

export const firstTest = `import assert from "node:assert/strict";
import { test } from "node:test";
import { callTool } from "meanwhile/testing";

test("a report has its pages, and says how far it is", async () => {
  const said: (string | undefined)[] = [];
  const { success, data } = await callTool(
    "report_build",
    { quarter: "Q3", pages: 2 },
    { onProgress: ({ message }) => said.push(message) },
  );
  assert.equal(success, true);
  assert.deepEqual(data, { title: "Report of Q3", pages: 2 });
  assert.deepEqual(said, ["Page 1 of 2", "Page 2 of 2"]);
});

test("a quarter that is none is refused by name", async () => {
  const { success, messages } = await callTool("report_build", { quarter: "Q5" });
  assert.equal(success, false);
  assert.match(messages[0]?.text ?? "", /quarter/);
});
`;
