import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { createRandom, pick } from "../chaos/random.ts";
import { waitFor } from "../helpers/meanwhile.ts";
import { isEnded, openTraces, startTask } from "../helpers/place.ts";
import { accept, type Both, commands, connectBoth } from "../helpers/rules.ts";
import { openServer } from "../helpers/server.ts";
import { type Fields, takesAll, type WireClient } from "../helpers/wire.ts";

test("T6: whatever is seen of a task, its statuses follow the allowed paths, and a terminal one is the last", async () => {
  const random = createRandom(6);
  const seen = new Sightings();
  const first = await openServer({ in: "process", commands });
  let both: Both = await connectBoth(first);
  let stop = await watch(both, seen);

  const gates = Array.from({ length: 4 }, () => openTraces());
  const asking = Array.from({ length: 4 }, () => openTraces());
  const wishes: readonly (readonly [string, Fields])[] = [
    ...[5, 40, 150, 400].map((ms) => ["work_nap", { ms, label: `${ms}` }] as const),
    ["work_fail", {}],
    ["work_protocol", {}],
    ["report_odd", { gapMs: 30, fails: true }],
    ...gates.map(({ file }) => ["work_long", { file }] as const),
    ...asking.map(({ file }) => ["ask_many", { file, together: ["Tea?", "Milk?"], again: 2 }] as const),
  ];
  const made: string[] = [];
  for (const [name, input] of wishes) {
    const client = pick(random, [both.core, both.modern]);
    const { taskId, task } = await startTask(client, name, input);
    // Over HTTP the handle may be late; a task that its own answer shows has begun like any other.
    expect(task.status, `${name} begins`).toBe("working");
    seen.note(`created ${client.revision}`, client.revision, taskId, task);
    seen.wanted.push(taskId);
    made.push(taskId);
  }
  const [, second, third] = made.slice(-asking.length) as [string, string, string, string];
  const cancels = [made[7], second, made[1]] as string[];
  await sleep(200);
  for (const taskId of cancels) await pick(random, [both.core, both.modern]).request("tasks/cancel", { taskId });
  for (let round = 0; round < 3; round++) await answerAll(both.modern, third, random);

  await stop();
  await first.kill();
  both = await connectBoth(await openServer({ in: "process", commands, home: first.home, cwd: first.cwd }));
  stop = await watch(both, seen);
  await sleep(200);
  for (const { release } of gates) release();
  const open = new Set(made);
  await waitFor(async () => {
    for (const taskId of made.slice(-asking.length)) await answerAll(both.modern, taskId, random);
    for (const taskId of open)
      if (isEnded((await both.modern.request("tasks/get", { taskId })).result ?? {})) open.delete(taskId);
    return open.size === 0 ? true : undefined;
  });
  // Ended tasks are looked at a while longer, and poked.
  for (const taskId of made) {
    await both.core.request("tasks/cancel", { taskId });
    await both.modern.request("tasks/cancel", { taskId });
    await both.modern.request("tasks/update", {
      taskId,
      inputResponses: { q1: accept("late"), q9: accept("never asked") },
    });
  }
  await sleep(300);
  await stop();

  expect(seen.problems()).toEqual([]);
  const all = [...seen.statuses()];
  expect(all.toSorted()).toEqual(["cancelled", "completed", "failed", "input_required", "working"]);
  // Every way to look was used, for every task.
  for (const observer of ["polls 2025-11-25", "polls 2026-07-28", "lists", "listens"])
    expect(seen.tasksOf(observer), observer).toBe(made.length);
  expect(seen.tasksOf("is told")).toBeGreaterThan(0);
});

/** What observers saw of tasks, each in its own order. */
class Sightings {
  readonly wanted: string[] = [];
  readonly #seen = new Map<string, Fields[]>();

  note(observer: string, revision: string, taskId: string, task: Fields): void {
    const key = `${observer}|${revision}|${taskId}`;
    const all = this.#seen.get(key) ?? [];
    all.push(task);
    this.#seen.set(key, all);
  }

  tasksOf(observer: string): number {
    return [...this.#seen.keys()].filter((key) => key.startsWith(`${observer}|`)).length;
  }

  statuses(): Set<string> {
    return new Set([...this.#seen.values()].flat().map(({ status }) => status as string));
  }

  problems(): string[] {
    const problems: string[] = [];
    const ends = new Map<string, string>();
    for (const [key, all] of this.#seen) {
      const [, revision, taskId] = key.split("|") as [string, string, string];
      let last: Fields | undefined;
      for (const task of all) {
        if (!["working", "input_required", "completed", "failed", "cancelled"].includes(task.status))
          problems.push(`${key}: ${task.status}`);
        if (last !== undefined && isEnded(last) && JSON.stringify(task) !== JSON.stringify(last))
          problems.push(`${key}: ${JSON.stringify(last)} became ${JSON.stringify(task)}`);
        if (last !== undefined && Date.parse(task.lastUpdatedAt) < Date.parse(last.lastUpdatedAt))
          problems.push(`${key}: it went back in time`);
        if (last !== undefined && task.createdAt !== last.createdAt) problems.push(`${key}: it was created twice`);
        last = task;
      }
      if (last === undefined || !isEnded(last)) continue;
      // Whoever looks, and however, it ended in one way.
      const end = `${last.status} ${last.statusMessage ?? ""} ${last.lastUpdatedAt} ${last.ttl ?? last.ttlMs}`;
      const known = ends.get(`${revision} ${taskId}`);
      if (known !== undefined && known !== end) problems.push(`${key}: ended as ${end} here, as ${known} elsewhere`);
      ends.set(`${revision} ${taskId}`, end);
    }
    return problems;
  }
}

/** Looks at all tasks in every way there is, until it is told to stop. */
async function watch({ core, modern, server }: Both, seen: Sightings): Promise<() => Promise<void>> {
  let isOver = false;
  const without = ({ resultType: _type, _meta: _server, ...task }: Fields) => task;
  const repeat = async (look: () => Promise<void>) => {
    while (!isOver) {
      await look().catch((error: unknown) => {
        if (!isOver) throw error;
      });
      await sleep(300);
    }
  };
  const poll = (client: WireClient) =>
    repeat(async () => {
      for (const taskId of seen.wanted) {
        const { result } = await client.request("tasks/get", { taskId });
        if (result !== undefined) seen.note(`polls ${client.revision}`, client.revision, taskId, without(result));
      }
    });
  const [poll25, poll26] = [poll(core), poll(modern)];
  const list = repeat(async () => {
    const { result } = await core.request("tasks/list");
    for (const task of (result?.tasks ?? []) as Fields[]) seen.note("lists", "2025-11-25", task.taskId, task);
  });
  const listened = new Set<string>();
  const listener = await server.client("2026-07-28", { over: "http", capabilities: takesAll });
  const listen = repeat(async () => {
    const fresh = seen.wanted.filter((taskId) => !listened.has(taskId));
    for (const taskId of fresh) listened.add(taskId);
    if (fresh.length > 0) await listener.listen(fresh);
  });
  const follow = core.openStream();
  return async () => {
    isOver = true;
    await Promise.all([poll25, poll26, list, listen, follow]);
    for (const { method, params } of listener.received)
      if (method === "notifications/tasks") seen.note("listens", "2026-07-28", params?.taskId, without(params ?? {}));
    for (const { method, params } of core.received)
      if (method === "notifications/tasks/status") seen.note("is told", "2025-11-25", params?.taskId, params ?? {});
  };
}

/** Answers what a task asks right now, some of it. */
async function answerAll(modern: WireClient, taskId: string, random: () => number): Promise<void> {
  const { result } = await modern.request("tasks/get", { taskId });
  const keys = Object.keys(result?.inputRequests ?? {}).filter(() => random() < 0.7);
  if (keys.length > 0)
    await modern.request("tasks/update", {
      taskId,
      inputResponses: Object.fromEntries(keys.map((key) => [key, accept(key)])),
    });
}
