import { expect, test, vi } from "vitest";
import { defineCommand } from "../../src/command/command.ts";
import { MemoryStore } from "../../src/store/memory-store.ts";
import { markKilled } from "../../src/system/worker-name.ts";
import { FakeClock, pass, settled } from "../helpers/fake-clock.ts";
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
  const options = { in: "memory", clock, store, commands: { pay } } as const;
  const server = await openServer(options);
  /** Another server of the same project, as after an idle daemon has ended. */
  const openNext = () => openServer({ ...options, home: server.home, cwd: server.cwd });
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
  /** Ends the runs with their results. */
  const finish = async () => {
    for (const end of ends) end();
    await pass(clock, 1_000);
  };
  return { server, openNext, start, kill, finish };
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

const withoutNote = expect.not.stringContaining("was interrupted");

test("an interrupted task is named once, also by the servers after this one, and no older one is named after it", async () => {
  const { server, openNext, start, kill, finish } = await setUp();
  const client = await server.client("plain");
  for (let round = 0; round < 2; round++) {
    await start(client, { "meanwhile/new": true });
    await kill();
  }
  expect((await start(client)).text).toContain("was interrupted");
  await finish();
  expect(await start(client), "this server").toEqual({ isNew: true, text: withoutNote });
  await finish();
  const next = await (await openNext()).client("plain");
  expect(await start(next), "the next server").toEqual({ isNew: true, text: withoutNote });
});

test("the first call after its server was killed names the call that ran there, before the sweeper has found its worker dead", async () => {
  const clock = new FakeClock();
  const store = new MemoryStore(clock);
  let runs = 0;
  const pay = defineCommand({
    summary: "Pays",
    run: () => {
      runs += 1;
      return runs === 1 ? new Promise<never>(() => {}) : { paid: runs };
    },
  });
  const options = { in: "memory", clock, store, commands: { pay } } as const;
  const server = await openServer(options);
  const client = await server.client("plain");
  client.call("pay", {}).catch(() => undefined);
  // The call is on record after 50 ms.
  const recorded = async (): Promise<string> => {
    await pass(clock, 10);
    return (await store.workers())[0] ?? (await recorded());
  };
  const worker = await settled(clock, recorded());
  const interrupt = vi.spyOn(store, "interrupt");
  const next = await openServer({ ...options, home: server.home, cwd: server.cwd });
  const nextClient = await next.client("plain");
  markKilled(worker);
  const call = () => settled(clock, nextClient.call("pay", {}), 1).then((result) => JSON.stringify(result));
  expect(interrupt).not.toHaveBeenCalled();
  expect(await call()).toMatch(/as the task [0-9a-f-]{36}, was interrupted/);
  await pass(clock, 2_000);
  expect(await call()).toEqual(withoutNote);
  expect(runs).toBe(3);
});

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
