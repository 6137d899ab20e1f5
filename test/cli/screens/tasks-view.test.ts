import { expect, test } from "vitest";
import { describeTask, withoutSecrets } from "../../../src/cli/screens/tasks-view.ts";
import { MemoryStore } from "../../../src/store/memory-store.ts";
import { statusLine } from "../../../src/task/status-line.ts";
import { isTerminal, type Task } from "../../../src/task/task.ts";
import { FakeClock } from "../../../src/testing/fake-clock.ts";
import { makeOneOfEach, withStore } from "../../store-suite/cases/bench.ts";

test("`tasks show` blanks headers and what is named as a secret, and nothing else", () => {
  const input = {
    url: "https://example.org/mcp",
    headers: { Authorization: "Bearer abc", "X-Anything": "abc" },
    target: { otherHeaders: { Cookie: "abc" }, kind: "http" },
    list: [{ api_key: "abc", page: 1 }],
    accessToken: "abc",
    tokens: 12,
    password: null,
    keyword: "kept",
  };
  expect(withoutSecrets(input)).toEqual({
    url: "https://example.org/mcp",
    headers: { Authorization: "•••", "X-Anything": "•••" },
    target: { otherHeaders: { Cookie: "•••" }, kind: "http" },
    list: [{ api_key: "•••", page: 1 }],
    accessToken: "•••",
    tokens: 12,
    password: null,
    keyword: "kept",
  });
});

test("an attempt whose worker died is counted as an attempt", async () => {
  const clock = new FakeClock();
  await withStore(
    async () => new MemoryStore(clock),
    { clock },
    async (bench) => {
      await makeOneOfEach(bench);
      const { tasks } = await bench.store.list(bench.scope(), { limit: 10 });
      const queued = tasks.find(({ status }) => status === "queued");
      if (queued === undefined) throw new Error("No task is queued.");
      const killed = { ...queued, attempts: 0, crashes: 1 };
      expect(describeTask(killed)).toMatchObject({ attempts: 1, crashes: 1 });
    },
  );
});

test("the time left of a later attempt does not count the wait before it as work", async () => {
  const clock = new FakeClock();
  await withStore(
    async () => new MemoryStore(clock),
    { clock },
    async (bench) => {
      await makeOneOfEach(bench);
      const { tasks } = await bench.store.list(bench.scope(), { limit: 10 });
      const found = tasks.find(({ status }) => status === "working");
      if (found === undefined || isTerminal(found)) throw new Error("No task is working.");
      const now = clock.now();
      // A command of 60 s that waited a minute in the queue, and has done 3 % since.
      const again: Task = {
        ...{ ...found, fence: 2, crashes: 1, startedAt: now - 62_000, updatedAt: now, questions: [] },
        progress: { value: 2, total: 60, percentage: 3, message: "Second 2" },
      };
      expect(statusLine({ ...again, isProven: false, estimateMs: undefined }, now)).toBe("Second 2 (3%)");
      expect(statusLine({ ...again, isProven: true, estimateMs: 60_000 }, now)).toBe("Second 2 (3%, about 59 s left)");
    },
  );
});

test("ended tasks are described from a list, which has no outcomes", async () => {
  const clock = new FakeClock();
  await withStore(
    async () => new MemoryStore(clock),
    { clock },
    async (bench) => {
      await makeOneOfEach(bench);
      const { tasks } = await bench.store.list(bench.scope(), { limit: 10 });
      expect(tasks.map(describeTask)).toContainEqual(expect.objectContaining({ status: "completed", attempts: 1 }));
    },
  );
});
