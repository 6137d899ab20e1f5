import assert from "node:assert/strict";
import type { NewTask, Task } from "../../../src/task/task.ts";
import type { StoreCase } from "../store-suite.ts";
import { assertTask, assertUnchanged, done, leaseMs, onStore, plain, question, ttlMs } from "./bench.ts";

export const creatingCases: readonly StoreCase[] = [
  onStore("create: a new task is queued, and its caller reads back every fact of it", async (bench) => {
    const fresh = bench.fresh({
      idempotencyKey: "k1",
      estimateMs: 1234.5,
      rules: { isSafe: false, maxAttempts: 7, backoffMs: 250 },
    });
    const created = await bench.store.create(fresh, { joinsEqual: true, maxLive: 1 });
    assert.equal(created.kind, "created");
    const expected = {
      ...fresh,
      status: "queued",
      version: 1,
      fence: 0,
      attempts: 0,
      crashes: 0,
      createdAt: bench.now,
      notBefore: bench.now,
      lease: undefined,
      statusMessage: undefined,
      progress: undefined,
      questions: [],
      updatedAt: bench.now,
      startedAt: undefined,
    };
    assertTask(created.task, expected);
    assertTask(await bench.read(fresh.taskId), expected);
  }),

  onStore("create: input comes back as it went in, whatever it holds", async (bench) => {
    const input: unknown = JSON.parse(
      '{"text":"Ünïcödé 🙂 \\u2028 \\\\ \\" \\u0000","deep":[[[{"a":null}]]],"n":1e-7,"big":9007199254740991,"__proto__":{"x":1},"constructor":"c"}',
    );
    const { taskId } = await bench.make({ input });
    const long = await bench.make({ input: { text: "x".repeat(1_000_000) } });
    assert.equal(JSON.stringify((await bench.read(taskId)).input), JSON.stringify(input));
    assert.deepEqual((await bench.read(long.taskId)).input, { text: "x".repeat(1_000_000) });
  }),

  onStore("create: what it gives is what its caller reads, queued or begun", async (bench) => {
    const rich: Partial<NewTask> = {
      caller: "Ada \u0000",
      input: { text: "\ud800", list: [1, undefined], none: undefined },
      origin: { door: "terminal", folder: "/home/ada" },
      progressToken: "7",
      isProven: true,
      ageMs: 12,
    };
    for (const facts of [{}, { environment: {} }, { environment: { HOME: "b" } }, rich])
      for (const options of [{}, { claim: { worker: "w1", leaseMs } }]) {
        const created = await bench.create(facts, options);
        assert.ok(created.kind === "created");
        const { taskId, caller } = created.task;
        assert.deepEqual(plain(created.task), plain(await bench.read(taskId, caller)));
      }
  }),

  onStore("create: what went in or came out can be changed without changing what is stored", async (bench) => {
    const input = { names: ["a"] };
    const { taskId } = await bench.make({ input });
    input.names.push("changed after create");
    const read = (await bench.read(taskId)) as { input: typeof input };
    read.input.names.push("changed after get");
    const claimed = (await bench.claim()) as { input: typeof input } | undefined;
    claimed?.input.names.push("changed after claim");
    assertTask(await bench.read(taskId), { input: { names: ["a"] } });
    const progress = { value: 1, context: { page: 1 } };
    await bench.store.report({ taskId, fence: 1 }, { progress });
    progress.context.page = 2;
    assertTask(await bench.read(taskId), { progress: { value: 1, context: { page: 1 } } });
    const outcome = { ...done, data: { names: ["a"] } };
    await bench.store.settle({ taskId, fence: 1 }, outcome);
    outcome.data.names.push("changed after settle");
    assertTask(await bench.read(taskId), { outcome: { ...done, data: { names: ["a"] } } });
  }),

  ...(
    [
      { door: "terminal", folder: "/home/ada/Ünïcödé \n 🙂" },
      { door: "terminal", folder: undefined },
      { door: "mcp", folder: "/home/ada" },
      { door: "mcp", folder: undefined },
      {
        door: "mcp",
        folder: undefined,
        client: { session: "s1", isModern: true, capabilities: { roots: {} }, scopes: ["read"] },
      },
    ] as const
  ).map((origin) =>
    onStore(
      `create: a task keeps where it was asked for, for whoever runs it: ${JSON.stringify(origin)}`,
      async (bench) => {
        const { taskId } = await bench.make({ origin });
        assertTask((await bench.claim()) as Task, { origin });
        await bench.store.interrupt("w1");
        assertTask((await bench.claim({ worker: "w2" })) as Task, { origin });
        assertTask(await bench.read(taskId), { origin });
        const call = await bench.journal({ origin });
        await bench.store.handOut(call, {
          reason: "it took too long",
          ttlMs,
          rules: { isSafe: true, maxAttempts: 1, backoffMs: 0 },
        });
        assertTask(await bench.read(call.taskId), { origin });
        const { tasks } = await bench.store.list(bench.scope(), { limit: 10 });
        assert.deepEqual(
          tasks.map((task) => task.origin),
          [origin, origin],
        );
      },
    ),
  ),

  onStore("create: an id that is taken is refused, and the task there stays as it is", async (bench) => {
    const { taskId } = await bench.make();
    await assertUnchanged(bench, taskId, async () => {
      await assert.rejects(bench.create({ taskId, caller: "bob" }));
      await assert.rejects(bench.create({ taskId }));
    });
  }),

  onStore("create: an equal call joins the live one of the same caller and project", async (bench) => {
    const first = await bench.make({ digest: "same" });
    for (const advance of [
      () => undefined,
      () => bench.claim(),
      () => bench.store.ask({ taskId: first.taskId, fence: 1 }, question),
    ]) {
      await advance();
      const again = await bench.create({ digest: "same" }, { joinsEqual: true });
      assert.equal(again.kind, "joined");
      assert.deepEqual(plain(again.task), plain(await bench.read(first.taskId)));
    }
  }),

  onStore(
    "create: an equal call with another value of a variable is another task, and is found by its own",
    async (bench) => {
      const first = await bench.make({ digest: "same", environment: { KEY: "a" } });
      const other = await bench.create({ digest: "same", environment: { KEY: "b" } }, { joinsEqual: true });
      assert.equal(other.kind, "created");
      assert.equal(
        (await bench.create({ digest: "same", environment: { KEY: "a", NEW: "z" } }, { joinsEqual: true })).kind,
        "joined",
      );
      assert.equal((await bench.store.findEqual(bench.scope(), "home", "same", { KEY: "a" }))?.taskId, first.taskId);
      assert.equal(await bench.store.findEqual(bench.scope(), "home", "same", { KEY: "c" }), undefined);
      const listed = async (environment: Record<string, string>) =>
        (await bench.store.list(bench.scope(), { environment, limit: 10 })).tasks.length;
      assert.deepEqual([await listed({ KEY: "a" }), await listed({ KEY: "c" }), await listed({})], [1, 0, 2]);
    },
  ),

  onStore(
    "create: an equal call of another caller or project, or one that wants no company, is another task",
    async (bench) => {
      await bench.make({ digest: "same" });
      const kinds = [
        await bench.create({ digest: "same", caller: "bob" }, { joinsEqual: true }),
        await bench.create({ digest: "same", project: "away" }, { joinsEqual: true }),
        await bench.create({ digest: "other" }, { joinsEqual: true }),
        await bench.create({ digest: "same" }, { joinsEqual: false }),
      ].map(({ kind }) => kind);
      assert.deepEqual(kinds, ["created", "created", "created", "created"]);
    },
  ),

  onStore("create: an equal call after the end is another task", async (bench) => {
    const claim = await bench.begin({ digest: "same" });
    await bench.store.settle(claim, done);
    assert.equal((await bench.create({ digest: "same" }, { joinsEqual: true })).kind, "created");
  }),

  onStore(
    "create: the same idempotency key gives the same task, live or ended, even when the caller is full",
    async (bench) => {
      const claim = await bench.begin({ idempotencyKey: "once" });
      for (const end of [async () => false, () => bench.store.settle(claim, done)]) {
        await end();
        const again = await bench.create({ idempotencyKey: "once" }, { maxLive: 0 });
        assert.equal(again.kind, "repeated");
        assert.deepEqual(plain(again.task), plain(await bench.read(claim.taskId)));
      }
    },
  ),

  onStore("create: an idempotency key counts for its caller and project alone", async (bench) => {
    await bench.make({ idempotencyKey: "once" });
    const kinds = [
      await bench.create({ idempotencyKey: "once", caller: "bob" }),
      await bench.create({ idempotencyKey: "once", project: "away" }),
      await bench.create({ idempotencyKey: "twice" }),
      await bench.create(),
      await bench.create(),
    ].map(({ kind }) => kind);
    assert.deepEqual(kinds, ["created", "created", "created", "created", "created"]);
  }),

  onStore("dropKey: the key of an ended task is free again, and the task stays", async (bench) => {
    const claim = await bench.begin({ idempotencyKey: "once" });
    assert.equal(await bench.store.dropKey(bench.scope(), claim.taskId), false, "a live task");
    await bench.store.settle(claim, done);
    assert.equal(await bench.store.dropKey(bench.scope("bob"), claim.taskId), false, "somebody else's");
    assert.equal(await bench.store.dropKey(bench.scope(), claim.taskId), true);
    assert.equal(await bench.store.dropKey(bench.scope(), claim.taskId), false, "a task without a key");
    assertTask(await bench.read(claim.taskId), { status: "completed", idempotencyKey: undefined, outcome: done });
    assert.equal((await bench.create({ idempotencyKey: "once" })).kind, "created");
    assert.equal((await bench.create({ idempotencyKey: "once" })).kind, "repeated");
  }),

  onStore("create: an idempotency key is free again once its task has expired", async (bench) => {
    const claim = await bench.begin({ idempotencyKey: "once" });
    await bench.store.settle(claim, done);
    bench.clock.advance(ttlMs - 1);
    assert.equal((await bench.create({ idempotencyKey: "once" })).kind, "repeated");
    bench.clock.advance(1);
    const again = await bench.create({ idempotencyKey: "once" });
    assert.equal(again.kind, "created");
    assert.equal(await bench.store.get(bench.scope(), claim.taskId), undefined);
    assert.equal((await bench.create({ idempotencyKey: "once" })).kind, "repeated");
  }),

  onStore(
    "create: a caller with too many live tasks is refused, others are not, and an end makes room",
    async (bench) => {
      const first = await bench.begin();
      await bench.begin();
      await bench.make();
      const refused = bench.fresh();
      assert.deepEqual(await bench.store.create(refused, { joinsEqual: false, maxLive: 3 }), { kind: "full", live: 3 });
      assert.equal(await bench.store.get(bench.scope(), refused.taskId), undefined);
      assert.equal((await bench.create({ caller: "bob" }, { maxLive: 3 })).kind, "created");
      assert.equal((await bench.create({ project: "away" }, { maxLive: 3 })).kind, "full");
      await bench.store.cancel(bench.scope(), first.taskId, "No longer needed.");
      assert.equal((await bench.create({}, { maxLive: 3 })).kind, "created");
    },
  ),
];
