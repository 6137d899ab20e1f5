import { describe, expect, onTestFinished, test, vi } from "vitest";
import { z } from "zod";
import { sleep } from "../../src/clock.ts";
import { type Command, defineCommand } from "../../src/command/command.ts";
import { MemoryShared } from "../../src/store/memory-shared.ts";
import { MemoryStore } from "../../src/store/memory-store.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { moving, openInMemory, turns } from "../helpers/in-memory.ts";
import { handleOf, type Result, WireClient, type WireOptions } from "../helpers/wire.ts";

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

/** What all servers share, which does not respond while it is away. */
class UnresponsiveShared extends MemoryShared {
  readonly #clock: FakeClock;
  isAway = false;

  constructor(clock: FakeClock) {
    super(() => clock.now());
    this.#clock = clock;
  }

  override async secret() {
    const clock = this.#clock;
    while (this.isAway) await sleep(clock, 100);
    return await super.secret();
  }
}

/** Methods that never respond while the store is away, as with PostgreSQL for a while. */
class UnresponsiveStore extends MemoryStore {
  readonly #clock: FakeClock;
  override readonly shared: UnresponsiveShared;
  isAway = false;
  hasSlowDurations = false;

  constructor(clock: FakeClock) {
    super(clock);
    this.#clock = clock;
    this.shared = new UnresponsiveShared(clock);
  }

  comeBack(): void {
    this.isAway = false;
    this.hasSlowDurations = false;
    this.shared.isAway = false;
  }

  override mayHaveLive(): boolean {
    return true;
  }

  async #untilBack(): Promise<void> {
    const clock = this.#clock;
    while (this.isAway) await sleep(clock, 100);
  }

  override async durations(...values: Parameters<MemoryStore["durations"]>) {
    const clock = this.#clock;
    while (this.hasSlowDurations) await sleep(clock, 100);
    return await super.durations(...values);
  }

  override async get(...values: Parameters<MemoryStore["get"]>) {
    await this.#untilBack();
    return await super.get(...values);
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

const started =
  "work was started, but the task store does not respond. Do not call it again now: you find it among your tasks as soon as the store is back.";

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
    const result = await beforeHostGivesUp(clock, client.call("work"));
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
    const result = await beforeHostGivesUp(clock, client.call("work"));
    expect(result.isError).toBe(true);
    expect(result.content?.[0]?.text).toContain(started);
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

test("a call with an idempotency key whose task runs when the store goes away is not told to call again", async () => {
  const { store, clock, client, runs } = await openCounted({});
  const { answer } = client.startCall("work", {}, { meta: { "meanwhile/idempotencyKey": "once" } });
  await passTime(clock, 1_000);
  expect(runs()).toBe(1);
  store.isAway = true;
  const { result } = await beforeHostGivesUp(clock, answer);
  expect(result).toMatchObject({ isError: true, content: [{ text: expect.stringContaining(started) }] });
  store.isAway = false;
});

describe("a call that asks gets an error before its host gives up, if the store does not respond", () => {
  const untaken = "work did not get the answers, because the task store does not respond. Call it again later.";

  test("before the question can be sent", async () => {
    const { store, clock, client } = await openAsking();
    store.shared.isAway = true;
    expect(textOf(await beforeHostGivesUp(clock, client.call("work")))).toContain(started);
  });

  test("before a question ahead of the run can be sent, and the command does not start", async () => {
    const { store, clock, client, runs } = await openAsking({ confirms: true });
    store.shared.isAway = true;
    expect(textOf(await beforeHostGivesUp(clock, client.call("work")))).toContain(notStarted);
    store.shared.isAway = false;
    await passTime(clock, 1_000);
    expect(runs()).toBe(0);
  });

  test.each([
    ["when its state is read", (store: UnresponsiveStore) => store.shared],
    ["when its task is read", (store: UnresponsiveStore) => store],
  ])("%s, and the answers are not used", async (_title, partOf) => {
    const { store, clock, client, answered, comeBack } = await openAsking();
    const asked = await moving(clock, client.call("work"));
    partOf(store).isAway = true;
    expect(textOf(await beforeHostGivesUp(clock, comeBack(asked)))).toContain(untaken);
    partOf(store).isAway = false;
    await passTime(clock, 1_000);
    expect(answered()).toBe(0);
  });

  test("when its answers are stored", async () => {
    const { store, clock, client, comeBack } = await openAsking();
    const asked = await moving(clock, client.call("work"));
    const back = Promise.withResolvers<void>();
    const answer = store.answer.bind(store);
    vi.spyOn(store, "answer").mockImplementation(async (...values) => {
      await back.promise;
      return await answer(...values);
    });
    expect(textOf(await beforeHostGivesUp(clock, comeBack(asked)))).toContain(started);
    back.resolve();
  });
});

const notStarted = "work was not started, because the task store does not respond. Call it again later.";

describe("a command that has not started when its host is about to give up is never run", () => {
  async function expectNoRun({ store, clock, client, runs, back }: NotStarted) {
    const result = await beforeHostGivesUp(clock, client.call("work"));
    expect(result.isError).toBe(true);
    expect(result.content?.[0]?.text).toContain(notStarted);
    back(store);
    await passTime(clock, 30_000);
    expect(runs()).toBe(0);
  }

  test("because the durations of earlier runs cannot be read", async () => {
    const setup = await openCounted({});
    setup.store.hasSlowDurations = true;
    await expectNoRun({
      ...setup,
      back: (store) => {
        store.hasSlowDurations = false;
      },
    });
  });

  test("because the store is still being opened", async () => {
    const opening = Promise.withResolvers<void>();
    const setup = await openCounted({ opening: opening.promise });
    await expectNoRun({ ...setup, back: () => opening.resolve() });
  });

  test("because its task cannot be stored", async () => {
    const setup = await openCounted({ revision: "2026-07-28", isLong: true });
    setup.store.isAway = true;
    await expectNoRun({
      ...setup,
      back: (store) => {
        store.isAway = false;
      },
    });
  });
});

test("a follow-up tool gets an error before its host gives up while the store does not respond", async () => {
  const { store, clock, client } = await openCounted({});
  const handle = handleOf(await moving(clock, client.call("work")));
  store.isAway = true;
  const result = await beforeHostGivesUp(clock, client.call("task_result", { job_id: handle.job_id }));
  expect(result.isError).toBe(true);
  expect(result.content?.[0]?.text).toContain(
    "task_result got no answer, because the task store does not respond. Call it again later.",
  );
  store.isAway = false;
});

interface NotStarted {
  readonly store: UnresponsiveStore;
  readonly clock: FakeClock;
  readonly client: WireClient;
  readonly runs: () => number;
  readonly back: (store: UnresponsiveStore) => void;
}

/** A server with one command, which counts its runs, and a client whose host gives up after 8 s. */
async function openCounted({
  revision = "2025-11-25",
  isLong = false,
  opening,
}: {
  readonly revision?: WireOptions["revision"];
  readonly isLong?: boolean;
  readonly opening?: Promise<void>;
}) {
  const clock = new FakeClock();
  const store = new UnresponsiveStore(clock);
  let runs = 0;
  const work = defineCommand({
    summary: "Count the run, then wait",
    long: isLong,
    async run(_input, task) {
      runs += 1;
      await sleep(clock, runMs, task.signal);
    },
  });
  const client = await open({ work }, { clock, store, revision, ...(opening && { opening }) });
  return { store, clock, client, runs: () => runs };
}

/** A server with one command, which asks, and a client of 2026-07-28 whose host gives up after 8 s. */
async function openAsking({ confirms = false } = {}) {
  const clock = new FakeClock();
  const store = new UnresponsiveStore(clock);
  let runs = 0;
  let answered = 0;
  const work = defineCommand({
    summary: "Ask, then answer",
    ...(confirms && { effects: "destroy" as const, confirm: "Go on?" }),
    async run(_input, task) {
      runs += 1;
      await task.ask("Go on?", z.object({ confirm: z.boolean() }));
      answered += 1;
    },
  });
  const client = await open({ work }, { clock, store, revision: "2026-07-28", capabilities: { elicitation: {} } });
  const comeBack = async ({ requestState, inputRequests }: Result) => {
    const accept = { action: "accept", content: { confirm: true } };
    const inputResponses = Object.fromEntries(Object.keys((inputRequests ?? {}) as object).map((key) => [key, accept]));
    const back = client.request("tools/call", { name: "work", arguments: {}, requestState, inputResponses });
    return (await back).result as Result;
  };
  return { store, clock, client, comeBack, runs: () => runs, answered: () => answered };
}

const textOf = (result: Result) => result.content?.[0]?.text;

/** The answer to a call that was sent just now. Rejects when the host has given up. */
async function beforeHostGivesUp<T>(clock: FakeClock, answer: Promise<T>): Promise<T> {
  const end = clock.now() + limitMs;
  let isAnswered = false;
  const settle = () => {
    isAnswered = true;
  };
  answer.then(settle, settle);
  for (; clock.now() < end; clock.advance(10)) {
    await turns();
    if (isAnswered) return await answer;
  }
  throw new Error(`There was no answer ${limitMs} ms after the request.`);
}

async function passTime(clock: FakeClock, ms: number): Promise<void> {
  for (const end = clock.now() + ms; clock.now() < end; clock.advance(100)) await turns();
}

interface OpenOptions {
  readonly clock: FakeClock;
  readonly transport?: "stdio" | "http";
  readonly store?: UnresponsiveStore;
  readonly revision?: WireOptions["revision"];
  readonly capabilities?: object;
  /** The store counts as opened when this resolves. */
  readonly opening?: Promise<void>;
}

async function open(
  commands: Readonly<Record<string, Command>>,
  { clock, transport = "stdio", store, revision = "2025-11-25", opening, ...options }: OpenOptions,
) {
  const hosts = { "my-host": { limitSeconds: limitMs / 1_000 } };
  const server = await openInMemory(commands, clock, { hosts }, store);
  const calls = await server.tasks.calls();
  if (opening !== undefined) vi.spyOn(server.tasks, "calls").mockReturnValue(opening.then(() => calls));
  const link = transport === "stdio" ? server.openPipe() : await server.openHttp();
  const tasks = revision === "2026-07-28" ? { extensions: { "io.modelcontextprotocol/tasks": {} } } : {};
  const { capabilities = tasks } = options;
  const client = new WireClient(link, { revision, name: "my-host", capabilities });
  onTestFinished(async () => {
    store?.comeBack();
    await moving(clock, client.close());
    await moving(clock, server.close(), 1_000);
  });
  await moving(clock, client.begin());
  return client;
}
