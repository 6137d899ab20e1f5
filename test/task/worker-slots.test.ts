import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { defineCommand } from "../../src/command/command.ts";
import { Worker } from "../../src/task/worker.ts";
import { openEngine } from "../helpers/engine.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { moving, turns } from "../helpers/in-memory.ts";

const places = 16;

/** A worker with as many places as a server's, for a command that asks and then holds, and one that ends at once. */
function setUp() {
  const clock = new FakeClock();
  const gate = Promise.withResolvers<void>();
  const asking = defineCommand({
    summary: "Ask, then wait at a gate",
    output: z.object({ name: z.string() }),
    async run(_input, task) {
      const { name } = await task.ask("Who are you?", z.object({ name: z.string() }));
      await gate.promise;
      return { name };
    },
  });
  const holding = defineCommand({ summary: "Wait at a gate", run: () => gate.promise });
  const quick = defineCommand({ summary: "End at once", run: () => ({}) });
  const entries = Object.entries({ ask: asking, hold: holding, end: quick }).map(([toolName, command]) => ({
    toolName,
    command,
    path: [toolName],
    file: "",
  }));
  const find = (name: string) => entries.find(({ toolName }) => toolName === name);
  const { store, history, engine, facts } = openEngine(clock);
  const worker = new Worker({ ...facts, find });
  worker.start();
  onTestFinished(async () => {
    gate.resolve();
    await moving(clock, worker.stop(0));
    await history.flush();
    await store.close();
  });
  const create = async (name: string, count = 1) => {
    const entry = find(name);
    if (entry === undefined) throw new Error(`there is no ${name}`);
    const request = { entry, input: {}, caller: "local:ada", reason: "test", isNew: true };
    const ids = [];
    for (let made = 0; made < count; made++) ids.push((await engine.create(request)).task.taskId);
    await turns();
    return ids;
  };
  const statuses = async (ids: readonly string[]) =>
    new Set((await Promise.all(ids.map((id) => engine.get("local:ada", id)))).map(({ status }) => status));
  const answer = async (id: string) =>
    await engine.answer("local:ada", id, { q1: { action: "accept", content: { name: `the one of ${id}` } } });
  return { clock, engine, create, statuses, answer, open: () => gate.resolve() };
}

test("sixteen tasks that wait for answers do not keep a seventeenth from running, and all go on when they are answered", async () => {
  const { clock, engine, create, statuses, answer, open } = setUp();
  const asking = await create("ask", places);
  expect(await statuses(asking)).toEqual(new Set(["input_required"]));
  const more = await create("end", places + 1);
  clock.advance(1_000);
  await turns();
  expect(await statuses(more)).toEqual(new Set(["completed"]));
  expect(await statuses(asking)).toEqual(new Set(["input_required"]));
  for (const id of asking) await answer(id);
  open();
  await turns(20);
  for (const id of asking)
    expect(await engine.get("local:ada", id)).toMatchObject({
      status: "completed",
      attempts: 1,
      outcome: { data: { name: `the one of ${id}` } },
    });
});

test("a question that is asked while others are queued lets the next one in at once, without waiting for the next look", async () => {
  const { create, statuses } = setUp();
  const asking = await create("ask", 3 * places);
  await turns(100);
  expect(await statuses(asking)).toEqual(new Set(["input_required"]));
});

test("what was answered takes its place again: no more run at a time than there are places", async () => {
  const { clock, create, statuses, answer, open } = setUp();
  const asking = await create("ask", places);
  for (const id of asking) await answer(id);
  await turns(20);
  expect(await statuses(asking)).toEqual(new Set(["working"]));
  const waiting = await create("end");
  clock.advance(1_000);
  await turns();
  expect(await statuses(waiting)).toEqual(new Set(["queued"]));
  open();
  await turns(20);
  expect(await statuses(waiting)).toEqual(new Set(["completed"]));
});
