import { describe, expect, test } from "vitest";
import { residentMiB } from "../helpers/daemon.ts";
import { rounds } from "../helpers/rounds.ts";
import { commands, expectRising, progressOf } from "../helpers/rules.ts";
import { openServer } from "../helpers/server.ts";
import type { Fields } from "../helpers/wire.ts";

describe("P3", () => {
  test.for(["a call", "a task"] as const)(
    "P3: so many reports of %s that nobody could read them come as ten a second at most, the last one among them",
    async (kind) => {
      const server = await openServer({ in: "process", commands });
      const pipe = await server.client("2025-11-25");
      const pid = server.children[0]?.child.pid;
      const megabytes = () => residentMiB(pid ?? 0);
      const reports = rounds.progressReports;
      const before = megabytes();
      const params = { name: "report_flood", arguments: { reports }, _meta: { progressToken: "flood" } };
      let { result } = await pipe.request("tools/call", { ...params, ...(kind === "a task" && { task: {} }) });
      if (kind === "a task") ({ result } = await pipe.request("tasks/result", { taskId: result?.task.taskId }));
      const { reported, ms } = (result as Fields).structuredContent.data;
      expect(reported).toBe(reports);
      const sent = progressOf(pipe.received, "flood");
      expectRising(sent);
      // One at once, ten a second, and the last.
      expect(sent.length).toBeLessThanOrEqual(2 + ms / 100);
      expect(sent.length).toBeGreaterThanOrEqual(2);
      expect(sent.at(-1)).toMatchObject({ progress: reports, total: reports });
      expect(megabytes() - before).toBeLessThan(200);
    },
  );
});
