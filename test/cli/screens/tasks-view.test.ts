import { expect, test } from "vitest";
import { describeTask, withoutSecrets } from "../../../src/cli/screens/tasks-view.ts";
import { MemoryStore } from "../../../src/store/memory-store.ts";
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
