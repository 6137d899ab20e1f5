import { getEventListeners } from "node:events";
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { sleep } from "../../src/clock.ts";
import { defineCommand } from "../../src/command/command.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { moving, openInMemory, turns } from "../helpers/in-memory.ts";
import { localKey } from "../helpers/server.ts";
import { WireClient, type WireOptions } from "../helpers/wire.ts";

// What is kept for a call, a task or a question goes with it, however long its connection or its process lives.

async function setUp() {
  const clock = new FakeClock();
  const second = defineCommand({
    summary: "Take a second",
    effects: "read",
    async run(_input, { signal }) {
      await sleep(clock, 1_000, signal);
      return {};
    },
  });
  const ask = defineCommand({
    summary: "Ask for a name",
    effects: "read",
    run: async (_input, task) => await task.ask("Your name?", z.object({ name: z.string() })),
  });
  const server = await openInMemory({ work_second: second, ask_name: ask }, clock);
  const clients: WireClient[] = [];
  onTestFinished(async () => {
    for (const client of clients) await moving(clock, client.close());
    await moving(clock, server.close(), 1_000);
  });
  const connect = async (options: WireOptions) => {
    const client = new WireClient(server.openPipe(), options);
    clients.push(client);
    return await moving(clock, client.begin());
  };
  return { clock, server, connect };
}

test("100 tasks with a progress token, one after the other on one connection: when they have ended, nothing waits for the end of the connection", async () => {
  const { clock, server, connect } = await setUp();
  const client = await connect({ revision: "2025-11-25" });
  const closed = () => getEventListeners(server.connections[0]?.closed as AbortSignal, "abort").length;
  const before = closed();
  for (let round = 0; round < 10; round++) {
    const calls = Array.from({ length: 10 }, (_, n) =>
      client.call("work_second", {}, { task: {}, meta: { progressToken: round * 10 + n } }),
    );
    await moving(clock, Promise.all(calls));
    clock.advance(2_000);
    await turns(20);
    clock.advance(1_000);
    await turns(20);
  }
  const { tasks } = (await moving(clock, client.request("tasks/list"))).result as unknown as {
    tasks: { status: string }[];
  };
  expect(tasks.filter(({ status }) => status === "completed")).toHaveLength(100);
  expect(closed()).toBeLessThanOrEqual(before + 1);
});

test("a call that was sent back with a question is forgotten when its task has ended elsewhere, not an hour later", async () => {
  const { clock, server, connect } = await setUp();
  const client = await connect({ revision: "2026-07-28", capabilities: { elicitation: {} } });
  for (let n = 0; n < 10; n++) {
    const { resultType } = await moving(clock, client.call("ask_name", {}));
    expect(resultType).toBe("input_required");
  }
  expect(server.parked.size).toBe(10);
  const { tasks } = await server.engine.list(localKey);
  for (const { taskId } of tasks) await server.engine.cancel(localKey, taskId);
  await turns();
  expect(server.parked.size).toBe(0);
  expect(clock.pendingTimers).toBeLessThan(10);
});
