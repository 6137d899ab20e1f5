import { expect, onTestFinished, test, vi } from "vitest";
import { defineCommand } from "../../src/command/command.ts";
import { MemoryStore } from "../../src/store/memory-store.ts";
import { createHere, createOnRecord } from "../../src/task/create-here.ts";
import { StoreDispatcher } from "../../src/task/dispatcher.ts";
import { Engine } from "../../src/task/engine.ts";
import { defaultLimits } from "../../src/task/limits.ts";
import type { ClaimRequest } from "../../src/task/store.ts";
import { Worker, type WorkerOptions } from "../../src/task/worker.ts";
import { workerFacts } from "../helpers/engine.ts";
import { FakeClock, settled } from "../helpers/fake-clock.ts";
import { turns } from "../helpers/in-memory.ts";

/** A worker for one command that goes on until it is told to end. */
function setUp(options: Partial<WorkerOptions> = {}, store = new MemoryStore(new FakeClock())) {
  const clock = new FakeClock();
  const facts = workerFacts(store, clock);
  const { history } = facts;
  const engine = new Engine({ ...facts, limits: { ...defaultLimits, localTasks: 1 } });
  const ends: (() => void)[] = [];
  const command = defineCommand({
    summary: "x",
    effects: "read",
    run: () => new Promise<object>((resolve) => ends.push(() => resolve({}))),
  });
  const entry = { command, toolName: "do_it", path: ["do", "it"], file: "x.ts" };
  const worker = new Worker({ ...facts, find: () => entry, ...options });
  const claims = vi.spyOn(store, "claim");
  const request = (caller: string) => ({ entry, input: {}, caller, reason: "test" });
  onTestFinished(async () => {
    for (const end of ends) end();
    await worker.stop(0);
    await history.flush();
    await store.close();
  });
  return {
    clock,
    store,
    engine,
    worker,
    claims,
    ends,
    request,
    make: (caller = "local:ada") => createHere({ engine, worker }, request(caller), false),
  };
}

test("where a worker has a place, a task is made and claimed in one, and runs", async () => {
  const { worker, claims, make, ends } = setUp();
  worker.start();
  await turns();
  claims.mockClear();
  const { task } = await make();
  expect(task).toMatchObject({ status: "working", fence: 1, lease: { worker: "w" } });
  await turns();
  expect({ begun: ends.length, claims: claims.mock.calls.length }).toEqual({ begun: 1, claims: 0 });
});

test("where it has none, a task waits in the queue until one is free", async () => {
  const { worker, make, ends, engine } = setUp({ concurrency: 1 });
  worker.start();
  await turns();
  const made = [await make("local:ada"), await make("local:bob"), await make("local:eve")];
  // Who holds none may have one more, until there are twice as many.
  expect(made.map(({ task }) => task.status)).toEqual(["working", "working", "queued"]);
  ends[0]?.();
  await turns(20);
  expect(await engine.get("local:eve", made[2]?.task.taskId)).toMatchObject({ status: "working" });
});

/** A worker that has heard of bob's task, which was made elsewhere, and is about to look. */
async function setUpWithQueue(concurrency: number) {
  let gate = Promise.resolve();
  const store = new MemoryStore(new FakeClock());
  class Gated extends StoreDispatcher {
    override next(request: ClaimRequest) {
      return gate.then(() => super.next(request));
    }
  }
  const parts = setUp({ dispatcher: new Gated(store), concurrency }, store);
  parts.worker.start();
  await turns();
  await parts.make("local:eve");
  await turns();
  const { promise, resolve } = Promise.withResolvers<void>();
  gate = promise;
  await parts.engine.create(parts.request("local:bob"));
  return { ...parts, look: resolve };
}

test("nobody jumps a queue of which the worker has heard and that it has not looked at yet, where places are few", async () => {
  const { make, engine, look } = await setUpWithQueue(2);
  const { task } = await make("local:ada");
  expect(task.status).toBe("queued");
  look();
  await turns(20);
  expect(await engine.get("local:ada", task.taskId)).toMatchObject({ status: "working" });
});

test("while more than half of the places are free, a task begins at once whatever is queued: there is room for that too", async () => {
  const { make, engine, look } = await setUpWithQueue(3);
  expect((await make("local:ada")).task.status).toBe("working");
  look();
  await turns(20);
  expect((await engine.list("local:bob")).tasks).toMatchObject([{ status: "working" }]);
});

test("a place that was kept for a task that is refused is free again", async () => {
  const { clock, worker, make } = setUp({ concurrency: 3 });
  worker.start();
  await turns();
  const free = () => {
    const places = Array.from({ length: 10 }, () => worker.keepPlace({ caller: "local:ada", isEndless: false }));
    for (const place of places) place?.giveBack();
    return places.filter((place) => place !== undefined).length;
  };
  expect(free()).toBe(3);
  await make();
  expect(free()).toBe(2);
  await expect(settled(clock, make(), 100)).rejects.toThrow("There are 1 live tasks");
  expect(free()).toBe(2);
});

test("a worker that takes no work claims nothing, and what is called there waits for one that does", async () => {
  const { engine, worker, request, make, ends } = setUp({ worksHere: false });
  worker.start();
  const made = await make();
  const { task } = await createOnRecord({ engine, worker }, request("local:bob"));
  await turns();
  expect([made.task.status, task.status, ends.length]).toEqual(["queued", "queued", 0]);
});

test("who stops while a task is being made waits for it, and for its run", async () => {
  const store = new MemoryStore(new FakeClock());
  const { promise, resolve } = Promise.withResolvers<void>();
  const create = store.create.bind(store);
  const { worker, engine, make, ends } = setUp({}, store);
  worker.start();
  await turns();
  vi.spyOn(store, "create").mockImplementation((...given) => promise.then(() => create(...given)));
  const making = make();
  await turns();
  let isStopped = false;
  const stopped = worker.stop(0).then(() => (isStopped = true));
  await turns(20);
  expect(isStopped, "before the task is there").toBe(false);
  resolve();
  const { task } = await making;
  await turns(20);
  expect(isStopped, "while it runs").toBe(false);
  for (const end of ends) end();
  await stopped;
  expect(await engine.get("local:ada", task.taskId)).toMatchObject({ status: "completed" });
});

test("a worker all of whose places are taken says that it has no room, and that it has some when one is free", async () => {
  const store = new MemoryStore(new FakeClock());
  const heard: boolean[] = [];
  class Heard extends StoreDispatcher {
    override setRoom(hasRoom: boolean) {
      if (heard.at(-1) !== hasRoom) heard.push(hasRoom);
    }
  }
  const { worker, make, ends } = setUp({ concurrency: 1, dispatcher: new Heard(store) }, store);
  worker.start();
  await turns();
  await make("local:ada");
  // Somebody waits behind it, so that the worker looks again.
  await make("local:bob");
  await turns(20);
  for (const end of ends) end();
  await turns(20);
  expect(heard).toEqual([true, false, true]);
});
