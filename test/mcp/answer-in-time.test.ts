import { describe, expect, onTestFinished, test } from "vitest";
import { sleep } from "../../src/clock.ts";
import { type Command, defineCommand } from "../../src/command/command.ts";
import { MemoryStore } from "../../src/store/memory-store.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { moving, openInMemory, turns } from "../helpers/in-memory.ts";
import { handleOf, WireClient } from "../helpers/wire.ts";

/** A host that gives up after 8 s, so a handle is due 6 s after the request has arrived. */
const limitMs = 8_000;
const handleMs = 6_000;
const runMs = 60_000;

describe.each(["stdio", "http"] as const)(
  "over %s, the deferral is timed from the arrival of the request",
  (transport) => {
    test.each([
      ["waits", 0, handleMs],
      ["computes for 4 s and then waits", 4_000, handleMs],
      ["blocks the event loop for 6.5 s and then waits", 6_500, 6_500],
    ])("a command that %s", async (_title, computeMs, answeredMs) => {
      const clock = new FakeClock();
      const command = defineCommand({
        summary: "Compute, then wait",
        effects: "read",
        async run(_input, task) {
          clock.advance(computeMs);
          await sleep(clock, runMs, task.signal);
        },
      });
      const client = await open({ work: command }, { clock, transport });
      const startedAt = clock.now();
      const result = await moving(clock, client.call("work"));
      expect(handleOf(result).status).toBe("working");
      expect(clock.now() - startedAt).toBeLessThanOrEqual(answeredMs + 20);
    });
  },
);

test("a result that is there when the time is up is sent in place of a handle", async () => {
  const clock = new FakeClock();
  const command = defineCommand({
    summary: "Compute",
    run() {
      clock.advance(6_500);
      return { done: true };
    },
  });
  const client = await open({ work: command }, { clock });
  const result = await moving(clock, client.call("work"));
  expect(result.structuredContent).toMatchObject({ success: true, data: { done: true } });
});

/** Its methods never answer while the store is away, as those of PostgreSQL do for a while. */
class UnresponsiveStore extends MemoryStore {
  readonly #clock: FakeClock;
  isAway = false;

  constructor(clock: FakeClock) {
    super(clock);
    this.#clock = clock;
  }

  override mayHaveLive(): boolean {
    return true;
  }

  async #untilBack(): Promise<void> {
    const clock = this.#clock;
    while (this.isAway) await sleep(clock, 100);
  }

  override async findEqual(...values: Parameters<MemoryStore["findEqual"]>) {
    await this.#untilBack();
    return await super.findEqual(...values);
  }

  override async create(...values: Parameters<MemoryStore["create"]>) {
    await this.#untilBack();
    return await super.create(...values);
  }
}

describe("a store that does not respond", () => {
  test("before the command has started: an error before the host gives up, and the command never runs", async () => {
    const clock = new FakeClock();
    const store = new UnresponsiveStore(clock);
    let runs = 0;
    const command = defineCommand({
      summary: "Write",
      run: () => {
        runs += 1;
      },
    });
    const client = await open({ work: command }, { clock, store });
    store.isAway = true;
    const startedAt = clock.now();
    const result = await moving(clock, client.call("work"));
    expect(clock.now() - startedAt).toBeLessThan(limitMs);
    expect(result.isError).toBe(true);
    expect(result.content?.[0]?.text).toContain(
      "work was not started, because the task store does not respond. Call it again later.",
    );
    store.isAway = false;
    await passTime(clock, 1_000);
    expect(runs).toBe(0);
  });

  test("while the command runs: an error before the host gives up, and a task when the store is back", async () => {
    const clock = new FakeClock();
    const store = new UnresponsiveStore(clock);
    const command = defineCommand({
      summary: "Wait",
      effects: "read",
      async run(_input, task) {
        await sleep(clock, runMs, task.signal);
        return { done: true };
      },
    });
    const client = await open({ work: command }, { clock, store });
    store.isAway = true;
    const startedAt = clock.now();
    const result = await moving(clock, client.call("work"));
    expect(clock.now() - startedAt).toBeLessThan(limitMs);
    expect(result.isError).toBe(true);
    expect(result.content?.[0]?.text).toContain("work is still running, but it could not be stored as a task");
    store.isAway = false;
    await passTime(clock, 2_000);
    const listed = await moving(clock, client.call("task_list"));
    const jobs = listed.structuredContent?.data.jobs as { job_id: string }[];
    expect(jobs).toHaveLength(1);
    const fetched = client.call("task_result", { job_id: jobs[0]?.job_id });
    clock.advance(runMs);
    expect((await moving(clock, fetched)).structuredContent).toMatchObject({ success: true, data: { done: true } });
  });
});

async function passTime(clock: FakeClock, ms: number): Promise<void> {
  for (const end = clock.now() + ms; clock.now() < end; clock.advance(100)) await turns();
}

interface OpenOptions {
  readonly clock: FakeClock;
  readonly transport?: "stdio" | "http";
  readonly store?: MemoryStore;
}

async function open(commands: Readonly<Record<string, Command>>, { clock, transport = "stdio", store }: OpenOptions) {
  const hosts = { "my-host": { limitSeconds: limitMs / 1_000 } };
  const server = await openInMemory(commands, clock, { hosts }, store);
  const link = transport === "stdio" ? server.openPipe() : await server.openHttp();
  const client = new WireClient(link, { revision: "2025-11-25", name: "my-host" });
  onTestFinished(async () => {
    await moving(clock, client.close());
    await moving(clock, server.close(), 1_000);
  });
  await moving(clock, client.begin());
  return client;
}
