import { expect, test } from "vitest";
import { defineCommand } from "../../src/command/command.ts";
import { MemoryStore } from "../../src/store/memory-store.ts";
import { FakeClock, settled } from "../helpers/fake-clock.ts";
import { openServer } from "../helpers/server.ts";
import type { WireClient } from "../helpers/wire.ts";

/** Calls equal to one whose worker was killed, as clients see them. */

async function setUp() {
  const clock = new FakeClock();
  const store = new MemoryStore(clock);
  const ends: (() => void)[] = [];
  const pay = defineCommand({
    summary: "Pays",
    long: true,
    run: () => new Promise<object>((resolve) => ends.push(() => resolve({ paid: ends.length }))),
  });
  const server = await openServer({ in: "memory", clock, store, commands: { pay } });
  const start = async (client: WireClient, meta: Record<string, unknown> = {}) => {
    const begun = ends.length;
    const result = await settled(clock, client.call("pay", {}, { meta }));
    return { isNew: ends.length > begun, text: JSON.stringify(result) };
  };
  /** Ends the runs as the death of their worker does. */
  const kill = async () => {
    for (const worker of await store.workers()) await store.interrupt(worker);
    // The tasks of a caller are read once a second.
    clock.advance(1_000);
  };
  return { server, start, kill };
}

test.each(["plain", "jobs", "tasks-2026"] as const)(
  "a %s client whose task was interrupted gets a new run for an equal call, and the ID of the earlier task",
  async (dialect) => {
    const { server, start, kill } = await setUp();
    const client = await server.client(dialect);
    expect(await start(client)).toMatchObject({ isNew: true });
    expect(await start(client), "joins the live task").toMatchObject({ isNew: false });
    await kill();
    const again = await start(client);
    expect(again).toEqual({ isNew: true, text: expect.stringMatching(/as the task [0-9a-f-]{36}, was interrupted/) });
  },
);

test("a call with the key of an interrupted run gets its outcome and advice, and a new key runs", async () => {
  const { server, start, kill } = await setUp();
  const client = await server.client("plain");
  const withKey = (key: string) => start(client, { "meanwhile/idempotencyKey": key });
  expect(await withKey("first")).toMatchObject({ isNew: true });
  await kill();
  const again = await withKey("first");
  expect(again.isNew).toBe(false);
  expect(again.text).toMatch(/Interrupted; outcome unknown|was interrupted/);
  expect(again.text).toContain("a new key runs it again");
  expect(await withKey("second")).toMatchObject({ isNew: true });
});
