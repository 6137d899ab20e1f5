import assert from "node:assert/strict";
import { BadCursor } from "../../../src/task/limits.ts";
import type { ListFilter } from "../../../src/task/store.ts";
import type { TaskStatus } from "../../../src/task/task.ts";
import type { StoreCase } from "../store-suite.ts";
import { assertTask, type Bench, makeOneOfEach, onStore } from "./bench.ts";

async function idsOf(bench: Bench, filter: Partial<ListFilter> = {}, caller = "ada"): Promise<string[]> {
  return (await bench.store.list(bench.scope(caller), { limit: 100, ...filter })).tasks.map(({ taskId }) => taskId);
}

export const listingCases: readonly StoreCase[] = [
  onStore("list: newest first, also when several were made in the same millisecond", async (bench) => {
    const made: string[] = [];
    for (let n = 0; n < 5; n++) made.unshift((await bench.make()).taskId);
    await bench.make({ caller: "bob" });
    bench.clock.advance(-60_000);
    made.unshift((await bench.make()).taskId);
    assert.deepEqual(await idsOf(bench), made);
  }),

  onStore("list: tasks come without input and outcome, otherwise as `get` gives them", async (bench) => {
    const ids = await makeOneOfEach(bench);
    const { tasks } = await bench.store.list(bench.scope(), { limit: 100 });
    assert.equal(tasks.length, Object.keys(ids).length);
    for (const listed of tasks) {
      const whole: Record<string, unknown> = { ...(await bench.read(listed.taskId)), input: undefined };
      if ("outcome" in whole) whole.outcome = undefined;
      assertTask(listed, whole);
    }
  }),

  onStore("list: pages hold everything once, and the last one has no cursor", async (bench) => {
    const made: string[] = [];
    for (let n = 0; n < 7; n++) {
      made.unshift((await bench.make()).taskId);
      await bench.make({ caller: "bob" });
    }
    for (const [limit, pages] of [
      [1, 7],
      [3, 3],
      [7, 1],
      [100, 1],
    ] as const) {
      const seen: string[] = [];
      let cursor: string | undefined;
      let count = 0;
      do {
        const page = await bench.store.list(bench.scope(), { limit, ...(cursor !== undefined && { cursor }) });
        seen.push(...page.tasks.map(({ taskId }) => taskId));
        cursor = page.nextCursor;
        count += 1;
      } while (cursor !== undefined && count < 20);
      assert.deepEqual(seen, made, `pages of ${limit}`);
      assert.equal(count, pages, `pages of ${limit}`);
    }
  }),

  onStore("list: what comes or goes meanwhile moves nothing into or out of the next page", async (bench) => {
    for (let n = 0; n < 4; n++) await bench.make();
    const first = await bench.store.list(bench.scope(), { limit: 2 });
    assert.deepEqual(
      first.tasks.map(({ taskId }) => taskId),
      ["task-4", "task-3"],
    );
    await bench.make();
    await bench.store.cancel(bench.scope(), "task-3", "No longer needed.");
    assert.equal(await bench.store.prune(bench.scope()), 1);
    assert.ok(first.nextCursor);
    assert.deepEqual(await idsOf(bench, { cursor: first.nextCursor }), ["task-2", "task-1"]);
  }),

  onStore("list: by status and by project", async (bench) => {
    const ids = await makeOneOfEach(bench);
    const away = await bench.make({ project: "away" });
    for (const status of Object.keys(ids) as TaskStatus[]) {
      assert.deepEqual(await idsOf(bench, { statuses: [status], project: "home" }), [ids[status]], status);
    }
    assert.deepEqual(await idsOf(bench, { statuses: ["queued", "failed"] }), [away.taskId, ids.queued, ids.failed]);
    assert.deepEqual(await idsOf(bench, { statuses: [] }), []);
    assert.deepEqual(await idsOf(bench, { project: "away" }), [away.taskId]);
    assert.deepEqual(await idsOf(bench, { project: "nowhere" }), []);
    assert.equal((await idsOf(bench)).length, 7);
  }),

  onStore("list: a filter holds across pages", async (bench) => {
    for (let n = 0; n < 6; n++) await bench.make({ project: n % 2 === 0 ? "home" : "away" });
    const first = await bench.store.list(bench.scope(), { limit: 2, project: "away" });
    assert.ok(first.nextCursor);
    assert.deepEqual(await idsOf(bench, { project: "away", cursor: first.nextCursor }), ["task-2"]);
  }),

  onStore("list: a cursor that is not ours is refused", async (bench) => {
    for (let n = 0; n < 3; n++) await bench.make();
    const { nextCursor = "" } = await bench.store.list(bench.scope(), { limit: 1 });
    assert.notEqual(nextCursor, "");
    const encode = (text: string) => Buffer.from(text).toString("base64url");
    const forged = [
      "",
      "1",
      "0",
      "-1",
      "task-2",
      "__proto__",
      "null",
      encode("1"),
      encode("v1:1"),
      encode("v1:-1"),
      encode("v1:1e3"),
      encode("{}"),
    ];
    const damaged = [
      `${nextCursor}=`,
      `${nextCursor} `,
      ` ${nextCursor}`,
      nextCursor.slice(0, -1),
      nextCursor.slice(1),
      `${nextCursor}A`,
      "x".repeat(10_000),
    ];
    for (const cursor of [...forged, ...damaged]) {
      await assert.rejects(
        bench.store.list(bench.scope(), { limit: 1, cursor }),
        BadCursor,
        `cursor «${cursor.slice(0, 40)}»`,
      );
    }
    assert.equal((await idsOf(bench, { cursor: nextCursor })).length, 2);
  }),

  onStore("list: somebody else's cursor is refused", async (bench) => {
    for (let n = 0; n < 3; n++) for (const caller of ["ada", "bob"]) await bench.make({ caller });
    const { nextCursor } = await bench.store.list(bench.scope("bob"), { limit: 1 });
    assert.ok(nextCursor);
    await assert.rejects(bench.store.list(bench.scope("ada"), { limit: 1, cursor: nextCursor }), BadCursor);
    assert.equal((await idsOf(bench, { cursor: nextCursor }, "bob")).length, 2);
  }),
];
