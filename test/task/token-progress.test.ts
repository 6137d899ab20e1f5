import { expect, onTestFinished, test } from "vitest";
import { defineCommand } from "../../src/command/command.ts";
import { silentLog } from "../../src/log.ts";
import { MemoryStore } from "../../src/store/memory-store.ts";
import { Engine } from "../../src/task/engine.ts";
import { History } from "../../src/task/history.ts";
import { listTokens, progressOfToken } from "../../src/task/token-progress.ts";
import { FakeClock } from "../helpers/fake-clock.ts";

const leaseMs = 30_000;

function setUp() {
  const clock = new FakeClock(Date.UTC(2026, 6, 28));
  const store = new MemoryStore(clock);
  const engine = new Engine({
    store,
    history: new History(store, clock),
    clock,
    log: silentLog,
    project: "p",
  });
  onTestFinished(() => store.close());
  const command = defineCommand({ summary: "x", run: () => ({}) });
  const begin = async (progressToken: string | number | undefined, more: { caller?: string; tool?: string } = {}) => {
    const entry = { command, toolName: more.tool ?? "report_build", path: [], file: "" };
    const { task } = await engine.create(
      { entry, input: {}, caller: more.caller ?? "local:ada", reason: "test", isNew: true, progressToken },
      { worker: "w", leaseMs },
    );
    return { taskId: task.taskId, fence: task.fence };
  };
  const of = (token: string | number) => progressOfToken(engine, "local:ada", { token, now: clock.now() });
  const tokens = async () => (await listTokens(engine, "local:ada", clock.now())).map(({ token }) => token);
  return { clock, store, engine, begin, of, tokens };
}

test("a token tells how far its call is", async () => {
  const { clock, store, begin, of } = setUp();
  const claim = await begin("t-1");
  clock.advance(2_000);
  await store.report(claim, {
    progress: { value: 3, total: 12, percentage: 25, message: "Page 3 of 12", context: { stage: "render" } },
  });
  clock.advance(1_000);
  expect(await of("t-1")).toEqual({
    ok: true,
    progress: {
      token: "t-1",
      tool: "report_build",
      taskId: claim.taskId,
      status: "working",
      startedAt: "2026-07-28T00:00:00.000Z",
      updatedAt: "2026-07-28T00:00:02.000Z",
      value: 3,
      total: 12,
      percentage: 25,
      message: "Page 3 of 12",
      context: { stage: "render" },
      secondsLeft: expect.any(Number),
    },
    others: [],
  });
});

test("what nobody knows, has ended, is another caller's or has no token is token_not_found", async () => {
  const { store, begin, of, tokens } = setUp();
  const claim = await begin("t-1");
  await begin("theirs", { caller: "local:bob" });
  await begin(undefined);
  await store.settle(claim, { ending: "completed", data: {}, messages: [], log: [], durationMs: 1 });
  for (const token of ["t-1", "theirs", "", "undefined", 7]) {
    const message = `No live call has the progress token ${JSON.stringify(token)} (token_not_found): it has ended, its client is gone, or the token is mistyped.`;
    expect(await of(token)).toEqual({ ok: false, error: "token_not_found", message });
  }
  expect(await tokens()).toEqual([]);
});

test("a silent call that somebody works on keeps its token; after half a minute without a worker it is a timeout", async () => {
  const { clock, store, begin, of, tokens } = setUp();
  const { taskId } = await begin("t-1");
  const stop = store.keepLeases("w", leaseMs, leaseMs / 3);
  clock.advance(100_000);
  stop();
  expect([(await of("t-1")).ok, await tokens()]).toEqual([true, ["t-1"]]);
  clock.advance(leaseMs + 1);
  const message = `Nobody has worked on the call with the progress token "t-1" for 130 s (timeout); meanwhile tasks show ${taskId} says what became of it.`;
  expect(await of("t-1")).toEqual({ ok: false, error: "timeout", message });
  expect(await tokens()).toEqual([]);
});

test("several clients may have chosen one token: the newest call is told, and the others beside it", async () => {
  const { begin, of } = setUp();
  await begin(7, { tool: "first" });
  await begin("7", { tool: "second" });
  for (const token of [7, "7"])
    expect(await of(token)).toMatchObject({
      ok: true,
      progress: { token: "7", tool: "second" },
      others: [{ token: 7, tool: "first" }],
    });
});

test("more tokens than fit on a page are all there", async () => {
  const { begin, tokens, engine } = setUp();
  const all = Array.from({ length: 1_001 }, (_, n) => n);
  for (const n of all) await begin(n);
  expect((await tokens()).toReversed()).toEqual(all);
  const page = engine.list.bind(engine);
  engine.list = (caller, filter) => page(caller, { ...filter, limit: 10 });
  expect((await tokens()).toReversed()).toEqual(all);
});
