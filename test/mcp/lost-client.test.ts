import { expect, test } from "vitest";
import { sleep } from "../../src/clock.ts";
import { defineCommand } from "../../src/command/command.ts";
import { FakeClock, settled, turns } from "../helpers/fake-clock.ts";
import { openServer, type Transport } from "../helpers/server.ts";
import { waitFor } from "../helpers/wait-for.ts";

/** A server that outlives its connections, and a command of a minute. */
async function open() {
  const clock = new FakeClock();
  let starts = 0;
  let stops = 0;
  const minute = defineCommand({
    summary: "Take a minute",
    async run(_input, { signal }) {
      starts += 1;
      signal.addEventListener("abort", () => (stops += 1));
      await sleep(clock, 60_000, signal);
      return { minutes: 1 };
    },
  });
  const server = await openServer({ in: "memory", commands: { work_minute: minute }, clock });
  const connect = (over: Transport, revision: string) => server.client({ revision }, { over, hasNoStream: true });
  return { clock, connect, starts: () => starts, stops: () => stops };
}

test.each([
  ["stdio", "2025-06-18"],
  ["stdio", "2025-11-25"],
  ["stdio", "2026-07-28"],
  ["http", "2025-06-18"],
  ["http", "2025-11-25"],
] as const)(
  "a connection over %s that is lost in the middle of a call of %s leaves a task, and its result to the next connection",
  async (door, revision) => {
    const { clock, connect, starts } = await open();
    const [lost, next] = [await connect(door, revision), await connect(door, revision)];
    const { drop } = lost.startCall("work_minute");
    await waitFor(() => starts() === 1);
    clock.advance(10_000);
    await turns();
    drop();
    const jobs = await waitFor(async () => {
      const { structuredContent } = await settled(clock, next.call("task_list"), 1);
      const found = structuredContent?.data.jobs as { job_id: string }[];
      return found.length > 0 ? found : undefined;
    });
    expect(jobs).toMatchObject([{ tool: "work_minute", status: "working" }]);
    clock.advance(60_000);
    await turns();
    const result = await settled(clock, next.call("task_result", { job_id: jobs[0]?.job_id }));
    expect(result.structuredContent).toMatchObject({ success: true, data: { minutes: 1 } });
    expect(starts()).toBe(1);
  },
);

test("over HTTP, a closed stream of 2026-07-28 is a cancel: the call is stopped, and leaves nothing", async () => {
  const { clock, connect, starts, stops } = await open();
  const [lost, next] = [await connect("http", "2026-07-28"), await connect("http", "2026-07-28")];
  const { drop } = lost.startCall("work_minute");
  await waitFor(() => starts() === 1);
  clock.advance(10_000);
  await turns();
  drop();
  await waitFor(() => stops() === 1);
  expect((await settled(clock, next.call("task_list"))).structuredContent?.data).toEqual({ jobs: [] });
});
