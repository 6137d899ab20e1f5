import { describe, expect, test } from "vitest";
import { z } from "zod";
import { sleep } from "../../src/clock.ts";
import { defineCommand } from "../../src/command/command.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { openPiped } from "../helpers/in-memory.ts";
import { localKey } from "../helpers/server.ts";
import { handleOf, resultOf } from "../helpers/wire.ts";

/** It cuts a call after a minute of silence, and progress starts that minute anew. */
const opencode = { revision: "2025-11-25", name: "opencode" } as const;
const limitMs = 60_000;

/** Reports this at once, and goes on in silence. */
function silentAfter(
  clock: FakeClock,
  first: { done: number; total: number } | { percentage: number } | undefined,
  ms: number,
) {
  return defineCommand({
    summary: "Say something, then be silent",
    async run(_input, task) {
      if (first !== undefined) task.progress(first);
      await sleep(clock, ms, task.signal);
      return {};
    },
  });
}

describe("a host that waits as long as it hears something", () => {
  test.each([
    ["3 of 3", { done: 3, total: 3 }, 3],
    ["100 %", { percentage: 100 }, 100],
    ["one of a very large total", { done: 2 ** 40, total: 2 ** 40 }, 2 ** 40],
  ] as const)(
    "hears from a command that has reported %s and goes on: values that rise, without a total",
    async (_title, first, total) => {
      const clock = new FakeClock();
      const { client, of, pass, settled } = await openPiped({
        ...opencode,
        clock,
        commands: { work_on: silentAfter(clock, first, 5 * limitMs) },
      });
      const times: number[] = [];
      client.onMessage(({ method }) => void (method === "notifications/progress" && times.push(clock.now())));
      const startedAt = clock.now();
      const { answer } = client.startCall("work_on", {}, { meta: { progressToken: "p" } });
      await pass(5 * limitMs);
      expect(resultOf(await settled(answer)).structuredContent).toMatchObject({ success: true });
      const [report, ...beats] = of("notifications/progress").map(
        ({ params }) => params as { progress: number; total?: number; message?: string },
      );
      expect(report).toMatchObject({ progress: total, total });
      expect(beats.length).toBeGreaterThan(5);
      for (const beat of beats) expect(beat).not.toHaveProperty("total");
      for (const beat of beats) expect(beat.message).toMatch(/^Still running after /);
      const values = [report?.progress ?? 0, ...beats.map(({ progress }) => progress)];
      expect(values).toEqual([...new Set(values)].toSorted((a, b) => a - b));
      const gaps = [...times, startedAt + 5 * limitMs].map((at, index, all) => at - (all[index - 1] ?? startedAt));
      expect(Math.max(...gaps), "the host would have cut it").toBeLessThan(limitMs);
    },
  );

  test.each([0, 30, 59])(
    "is answered by task_result after the %s seconds it asked for, with a progress token",
    async (wait_seconds) => {
      const clock = new FakeClock();
      const { client, settled, call } = await openPiped({
        ...opencode,
        clock,
        commands: { work_on: silentAfter(clock, undefined, 60 * limitMs) },
      });
      const { job_id } = handleOf(await call("work_on"));
      const askedAt = clock.now();
      const { answer } = client.startCall("task_result", { job_id, wait_seconds }, { meta: { progressToken: "p" } });
      expect(resultOf(await settled(answer)).structuredContent?.data).toMatchObject({ job_id, status: "working" });
      expect(clock.now() - askedAt).toBeGreaterThanOrEqual(wait_seconds * 1000);
      expect(clock.now() - askedAt).toBeLessThan(wait_seconds * 1000 + limitMs / 4);
    },
  );

  test("hears from task_result in time, however long it waits", async () => {
    const clock = new FakeClock();
    const { client, pass, call } = await openPiped({
      ...opencode,
      clock,
      commands: { work_on: silentAfter(clock, undefined, 60 * limitMs) },
    });
    const { job_id } = handleOf(await call("work_on"));
    const heard = [clock.now()];
    client.onMessage(
      ({ method, params }) =>
        void (method === "notifications/progress" && params?.progressToken === "p" && heard.push(clock.now())),
    );
    client.startCall("task_result", { job_id }, { meta: { progressToken: "p" } });
    await pass(5 * limitMs);
    const gaps = [...heard.slice(1), clock.now()].map((at, index) => at - (heard[index] ?? 0));
    expect(Math.max(...gaps), "the host would have cut it").toBeLessThan(limitMs);
  });
});

describe("2025-11-25", () => {
  const nov25 = { revision: "2025-11-25" } as const;
  const runs: number[] = [];
  const noted = defineCommand({
    summary: "Write into the log",
    input: z.object({ n: z.number() }),
    run({ n }, task) {
      runs.push(n);
      task.log.info("first line");
      task.log.debug("second line", { n });
      return { n };
    },
  });

  test.each([
    ["null", null],
    ["true", true],
    ["a text", "yes"],
    ["a number", 60_000],
    ["a list", []],
  ])("params.task that is %s is refused with -32602, and nothing is run", async (_title, task) => {
    const { client, request, engine } = await openPiped({ ...nov25, commands: { work_note: noted } });
    runs.length = 0;
    const { error } = await request("tools/call", { name: "work_note", arguments: { n: 1 }, task });
    expect(error).toMatchObject({ code: -32602, message: expect.stringContaining("`task`") });
    expect(runs).toEqual([]);
    expect((await engine.list(localKey, { withCalls: true })).tasks).toEqual([]);
    expect(client.received.filter(({ method }) => method !== undefined)).toEqual([]);
  });

  test("after logging/setLevel tasks/result carries the log, as the answer to a call does; before that neither does", async () => {
    const { call, request } = await openPiped({ ...nov25, commands: { work_note: noted } });
    const both = async (n: number) => {
      const { structuredContent: inline } = await call("work_note", { n });
      const { task } = await call("work_note", { n }, { task: {} });
      const { structuredContent: later } = resultOf(await request("tasks/result", { taskId: task?.taskId }));
      return { inline, later };
    };
    const before = await both(1);
    expect(before.inline).not.toHaveProperty("log");
    expect(before.later).toEqual(before.inline);
    await request("logging/setLevel", { level: "debug" });
    const after = await both(2);
    const lines = [
      { level: "info", text: "first line", timestamp: expect.any(String) },
      { level: "debug", text: "second line", details: { n: 2 }, timestamp: expect.any(String) },
    ];
    expect(after.inline).toMatchObject({ log: lines });
    expect(after.later).toMatchObject({ log: lines });
  });
});
