import path from "node:path";
import { describe, expect, test } from "vitest";
import { systemClock } from "../../src/clock.ts";
import { MemoryStore } from "../../src/store/memory-store.ts";
import { bucketOf } from "../../src/task/quantiles.ts";
import { gate, kindOf } from "../helpers/project.ts";
import { type LocalOptions, openServer } from "../helpers/server.ts";
import { waitFor } from "../helpers/wait-for.ts";
import { type Json, takesJobs, type WireClient, type WireOptions } from "../helpers/wire.ts";

const commands = ["deferral", "questions"].map((name) =>
  path.resolve(import.meta.dirname, `../fixtures/${name}/commands`),
);
const open = (options: Partial<LocalOptions> = {}) => openServer({ in: "memory", commands, ...options });
const timestamp = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
const message = (type: string, text: string) => ({ type, text, timestamp });

/** What a client was sent about its jobs, up to a result. */
async function untilResult(client: WireClient): Promise<{ method: string | undefined; params: Json | undefined }[]> {
  await waitFor(
    () => client.received.some(({ method }) => method === "notifications/tool_result"),
    () => `no tool_result among ${JSON.stringify(client.received)}`,
  );
  // Whatever is still on its way comes before this answer.
  await client.call("work_quick");
  return client.received.filter(({ method }) => method !== undefined).map(({ method, params }) => ({ method, params }));
}

describe("job notifications", () => {
  test.each([
    ["its own token", { meta: { progressToken: "abc" } }, "abc"],
    ["a token that is a number", { meta: { progressToken: 7 } }, 7],
    ["no token", {}, undefined],
  ] as const)(
    "an estimate at once, progress, one result: message by message, with %s",
    async (_title, options, token) => {
      const client = await (await open()).client("jobs");
      const before = client.received.length;
      const answer = await client.call("work_sync", {}, options);
      const job_id = answer.structuredContent?.data.job_id as string;
      expect(client.received[before]?.result, "nothing comes before the answer").toEqual(answer);
      expect(answer.structuredContent).toEqual({
        success: true,
        data: {
          job_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
          estimated_runtime_seconds: 45,
          status: expect.stringMatching(/^(queued|running)$/),
        },
        messages: [
          message(
            "info",
            expect.stringMatching(/^Operation (queued|running)\. Estimated runtime: 45 s\.$/) as unknown as string,
          ),
        ],
      });
      expect(JSON.parse(answer.content?.[0]?.text ?? "")).toEqual(answer.structuredContent);
      const progressToken = token ?? job_id;
      const result = {
        success: true,
        data: { files_processed: 500 },
        messages: [message("success", "Sync completed successfully")],
      };
      const progress = (part: number, text: string) => ({
        method: "notifications/progress",
        params: { progressToken, job_id, progress: part, message: text, timestamp },
      });
      expect(await untilResult(client)).toEqual([
        progress(0.3, "Processing 150 of 500 files..."),
        progress(0.6, "Processing 300 of 500 files..."),
        { method: "notifications/tool_result", params: { job_id, result, timestamp } },
      ]);
    },
  );

  test("an error is a result, too: { success: false, data: {}, messages: [error] }", async () => {
    const client = await (await open()).client("jobs");
    const answer = await client.call("work_sync", { fail: true });
    expect(answer.structuredContent).toMatchObject({ success: true, data: { job_id: expect.any(String) } });
    const ends = (await untilResult(client)).filter(({ method }) => method === "notifications/tool_result");
    expect(ends.map(({ params }) => params)).toEqual([
      {
        job_id: answer.structuredContent?.data.job_id,
        result: {
          success: false,
          data: {},
          messages: [
            {
              ...message("error", "Failed to sync: Permission denied"),
              details: expect.stringMatching(
                /^Error: Failed to sync: Permission denied\nat \S+commands\/work\/sync\.ts:18:\d+$/,
              ),
            },
          ],
        },
        timestamp,
      },
    ]);
  });

  test("a job that is cancelled says so, once", async () => {
    const client = await (await open()).client("jobs");
    const work = gate();
    const { structuredContent } = await client.call("work_long", work.input);
    const job_id = structuredContent?.data.job_id;
    await work.seen("started");
    await client.call("task_cancel", { job_id });
    const ends = (await untilResult(client)).filter(({ method }) => method === "notifications/tool_result");
    expect(ends.map(({ params }) => params)).toMatchObject([
      { job_id, result: { success: false, data: {}, messages: [{ type: "error" }] } },
    ]);
  });

  test("the result can be fetched as well, and two jobs do not get mixed up", async () => {
    const client = await (await open()).client("jobs");
    const jobs = await Promise.all(
      [10, 20].map(
        async (files) => (await client.call("work_sync", { files })).structuredContent?.data.job_id as string,
      ),
    );
    const fetched = await Promise.all(jobs.map((job_id) => client.call("task_result", { job_id })));
    expect(fetched.map(({ structuredContent }) => structuredContent?.data.files_processed)).toEqual([10, 20]);
    await waitFor(() => client.received.filter(({ method }) => method === "notifications/tool_result").length === 2);
    const told = client.received
      .filter(({ method }) => method === "notifications/tool_result")
      .map(({ params }) => params as { job_id: string; result: Json });
    expect(Object.fromEntries(told.map(({ job_id, result }) => [job_id, result]))).toEqual(
      Object.fromEntries(jobs.map((job_id, at) => [job_id, fetched[at]?.structuredContent])),
    );
  });

  test("a fast command is answered plainly, bad arguments too, and who asked for nothing hears nothing", async () => {
    const server = await open();
    const client = await server.client("jobs");
    expect(kindOf(await client.call("work_quick", { text: "a" }, { meta: { progressToken: 1 } }))).toBe("answer");
    const refused = await client.call("work_sync", { files: "many" });
    expect(refused).toMatchObject({ isError: true, structuredContent: { success: false, data: {} } });
    expect(refused.content?.[0]?.text).toContain("`files`");
    expect(client.received.filter(({ method }) => method !== undefined)).toEqual([]);
    const others: WireOptions[] = [
      { revision: "2025-11-25" },
      { revision: "2025-11-25", capabilities: { experimental: { "meanwhile/other": {} } } },
      { revision: "2026-07-28", capabilities: takesJobs },
    ];
    for (const options of others) {
      const other = await server.client({ name: "mcp", ...options });
      expect(kindOf(await other.call("work_sync", { fail: true })), JSON.stringify(options)).toBe("error");
      expect(other.received.filter(({ method }) => method === "notifications/tool_result")).toEqual([]);
    }
  });
});

describe("what is known of durations", () => {
  test.each(["2025-11-25", "2026-07-28"] as const)(
    "resource meanwhile://stats: totals over all callers, and no callers (%s)",
    async (revision) => {
      const server = await open();
      const http = { over: "http", hasNoStream: true } as const;
      const client = await server.client(revision, http);
      const stranger = await server.client(revision, { ...http, isAnonymous: true });
      for (const caller of [client, stranger, client]) await caller.call("work_quick");
      await client.call("work_sync", { fail: true });
      const { resources } = (await client.request("resources/list")).result as unknown as { resources: Json[] };
      expect(resources).toEqual([expect.objectContaining({ uri: "meanwhile://stats", mimeType: "application/json" })]);
      const { contents } = (await stranger.request("resources/read", { uri: "meanwhile://stats" }))
        .result as unknown as {
        contents: { text: string; uri: string }[];
      };
      const ms = expect.any(Number);
      expect(JSON.parse(contents[0]?.text ?? "")).toEqual({
        commands: [{ command: "work_quick", runs: 3, p50Ms: ms, p95Ms: ms, p99Ms: ms }],
      });
      expect((await client.request("resources/read", { uri: "meanwhile://nothing" })).error).toMatchObject({
        code: expect.any(Number),
      });
    },
  );

  test("the estimate is absent where nothing is known, and where runs take less than a tenth of a second", async () => {
    const server = await open({ env: { MEANWHILE_AUTO_TASK_TOOLS: "work_quick" } });
    const jobs = await server.client("jobs");
    const plain = await server.client("2025-06-18");
    const ask = async () => (await jobs.call("work_quick", {}, { meta: { "meanwhile/new": true } })).structuredContent;
    const nothing = {
      data: { job_id: expect.any(String), status: expect.any(String) },
      messages: [{ text: expect.stringMatching(/^Operation (queued|running)\.$/) }],
    };
    const first = await ask();
    expect(first).toMatchObject(nothing);
    expect(first?.data).not.toHaveProperty("estimated_runtime_seconds");
    for (let run = 0; run < 6; run++) await plain.call("work_quick");
    const later = await ask();
    expect(later).toMatchObject(nothing);
    expect(later?.data).not.toHaveProperty("estimated_runtime_seconds");
  });

  test('_meta["meanwhile/tool"]: async as declared, taskModeRecommended as declared or by history', async () => {
    const store = new MemoryStore(systemClock);
    const count = (command: string, ms: number, runs: number) => ({
      command: `p/${command}`,
      kind: "time" as const,
      bucket: bucketOf(ms),
      count: runs,
    });
    await store.recordDurations([
      count("work_gated", 12_000, 5),
      count("work_reading", 12_000, 4),
      count("work_quick", 9_000, 90),
      count("work_quick", 12_000, 3),
    ]);
    const server = await open({ store, config: { project: "p" } });
    for (const revision of ["2025-06-18", "2026-07-28"] as const) {
      const client = await server.client(revision);
      const { tools } = (await client.request("tools/list")).result as unknown as {
        tools: { name: string; _meta: Record<string, Json> }[];
      };
      const about = Object.fromEntries(tools.map(({ name, _meta }) => [name, _meta["meanwhile/tool"]]));
      expect(about.work_sync).toEqual({ async: true, taskModeRecommended: true });
      expect(about.work_gated).toEqual({ async: false, taskModeRecommended: true });
      expect(about.work_reading, "four runs are too few").toEqual({ async: false });
      expect(about.work_quick, "its p95 is below 10 s").toEqual({ async: false });
      expect(about.ask_name).toEqual({ async: false });
    }
  });
});
