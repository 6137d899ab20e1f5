import { expect, test } from "vitest";
import { defineCommand } from "../../../src/command/command.ts";
import { openPiped } from "../../helpers/in-memory.ts";

test("a task whose result was fetched before anybody followed it is told no progress afterwards", async () => {
  const quick = defineCommand({
    summary: "End at once",
    long: true,
    run(_input, task) {
      task.progress({ done: 1, total: 2 });
      return {};
    },
  });
  const { client, of, pass } = await openPiped({ commands: { work_quick: quick }, revision: "2025-11-25" });
  const _meta = { progressToken: "quick" };
  // Time stands still until the result is there.
  const { result } = await client.request("tools/call", { name: "work_quick", arguments: {}, task: {}, _meta });
  const ended = await client.request("tasks/result", { taskId: result?.task.taskId });
  expect(ended.result?.structuredContent).toMatchObject({ success: true });
  await pass(1_000);
  expect(of("notifications/tasks/status").map(({ params }) => params?.status)).toEqual(["completed"]);
  expect(of("notifications/progress")).toEqual([]);
});
