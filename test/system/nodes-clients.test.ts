import { describe, expect, test } from "vitest";
import { type Asked, connect, newestV1, sdks } from "../helpers/clients.ts";
import { shareAmongTests } from "../helpers/home.ts";
import { waitFor } from "../helpers/meanwhile.ts";
import { clientAt, startNodes } from "../helpers/nodes.ts";
import { gate, taskIdOf } from "../helpers/project.ts";
import { startRoundRobin } from "../helpers/round-robin.ts";
import { handleOf, type Result, takesTasks } from "../helpers/wire.ts";

/** Three servers in processes of their own, on one store, behind a proxy that sends every request to the next. */
const balanced = shareAmongTests(async () => {
  const nodes = await startNodes(3);
  return await startRoundRobin(nodes.map(({ url }) => url));
});
const clients = sdks.filter((sdk) => sdk === newestV1 || sdk.title.includes("auto") || sdk.title.includes("legacy"));

for (const sdk of clients)
  describe(sdk.title, () => {
    test("lists, calls, hears of progress, answers and cancels, and sees no error", async () => {
      const asked: Asked[] = [];
      const answer = (question: Asked) => {
        asked.push(question);
        return { action: "accept", content: { name: "Ada" } } as const;
      };
      const { url, sent } = await balanced();
      const client = await connect(sdk, { url }, { answer });
      await client.subscribe();
      for (let n = 0; n < 3; n++) expect((await client.listTools()).length).toBeGreaterThan(5);
      for (const text of ["one", "two", "three"])
        expect(await client.call("work_quick", { text })).toMatchObject({ structuredContent: { data: { text } } });

      const march = gate();
      const steps: number[] = [];
      const marching = client.call("node_march", march.input, { onprogress: ({ progress }) => steps.push(progress) });
      await waitFor(() => steps.length >= 3);
      march.open();
      expect(await marching).toMatchObject({ structuredContent: { success: true } });
      expect(steps).toEqual([...new Set(steps)].toSorted((a, b) => a - b));

      const { input, lines } = gate();
      const greeting = { structuredContent: { data: { greeting: "Hello, Ada!" } } };
      expect(await client.call("ask_name", input)).toMatchObject(greeting);
      expect(asked.map(({ message }) => message)).toEqual(["What is your name?"]);
      expect(lines()).toEqual(["started", "answered Ada"]);

      const stopped = gate();
      const stop = new AbortController();
      const stopping = client.call("work_gated", stopped.input, { signal: stop.signal });
      await stopped.seen("started");
      stop.abort();
      await expect(stopping).rejects.toThrow();
      await stopped.seen("stopped");
      expect(client.errors).toEqual([]);
      expect(new Set(sent.map((one) => one.url)).size).toBe(3);
    });
  });

for (const revision of ["2025-06-18", "2025-11-25", "2026-07-28"])
  test(`a client of ${revision} without tasks follows a job by its handle from node to node`, async () => {
    const { url } = await balanced();
    const client = await clientAt(() => url, { revision });
    const { input, open, seen, starts } = gate();
    const { job_id } = handleOf(await client.call("work_long", input));
    for (let n = 0; n < 3; n++)
      expect(handleOf(await client.call("task_status", { job_id })).status).toMatch(/working|queued/);
    await seen("started");
    const waiting = client.call("task_result", { job_id, wait_seconds: 30 });
    open();
    expect(await waiting).toMatchObject({ structuredContent: { data: { passed: input.file } } });
    expect(starts()).toBe(1);
  });

for (const [revision, capabilities, task] of [
  ["2025-11-25", {}, {}],
  ["2026-07-28", takesTasks, undefined],
] as const)
  test(`a client of ${revision} makes, polls and cancels tasks`, async () => {
    const { url } = await balanced();
    const client = await clientAt(() => url, { revision, capabilities });
    const { input, seen } = gate();
    const taskId = taskIdOf(await client.call("work_long", input, task === undefined ? {} : { task }));
    await seen("started");
    for (let n = 0; n < 4; n++)
      expect((await client.request("tasks/get", { taskId })).result).toMatchObject({ status: "working" });
    expect((await client.request("tasks/cancel", { taskId })).error).toBeUndefined();
    await seen("stopped");
    const { result } = await client.request("tasks/get", { taskId });
    expect(result as Result).toMatchObject({ status: "cancelled" });
  });
