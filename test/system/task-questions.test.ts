import { expect, test } from "vitest";
import { isEnded, openTraces, startTask, taskWhen } from "../helpers/place.ts";
import { accept, commands, connectBoth, nextQuestions } from "../helpers/rules.ts";
import { openServer, type ProcessServer } from "../helpers/server.ts";
import type { Fields } from "../helpers/wire.ts";

/** A server in a process of its own, on the home of the one before it. */
const openBoth = async (before?: ProcessServer) =>
  await connectBoth(
    await openServer({ in: "process", commands, ...(before && { home: before.home, cwd: before.cwd }) }),
  );

test("T10: no key is used twice in a task's life, also across a crash", async () => {
  const traces = openTraces();
  let { server, modern } = await openBoth();
  const questions = 12;
  const { taskId } = await startTask(modern, "ask_many", {
    file: traces.file,
    together: ["Tea?", "Milk?", "Tea?"],
    again: questions,
  });
  const messages = new Map<string, string>();
  const answered = new Set<string>();
  const note = (open: Record<string, Fields>) => {
    for (const [key, { params }] of Object.entries(open)) {
      // A key stands for one question, and is gone for good once that is answered.
      expect(messages.get(key) ?? params.message, key).toBe(params.message);
      expect(answered, `${key} is asked again`).not.toContain(key);
      messages.set(key, params.message);
    }
  };
  const answer = async (key: string) => {
    await modern.request("tasks/update", { taskId, inputResponses: { [key]: accept(`to ${key}`) } });
    answered.add(key);
  };
  const crash = async () => {
    await server.kill();
    ({ server, modern } = await openBoth(server));
  };
  await taskWhen(modern, taskId, (task) => Object.keys(task.inputRequests ?? {}).length === 3).then((task) =>
    note(task.inputRequests),
  );
  const [tea = ""] = messages.keys();
  await answer(tea);
  await crash();
  note((await taskWhen(modern, taskId, ({ status }) => status === "input_required")).inputRequests);
  expect(messages.size).toBe(3);
  for (const key of [...messages.keys()].slice(1)) await answer(key);
  for (let at = 1; at <= questions; at++) {
    note(await nextQuestions(modern, taskId, messages));
    const fresh = [...messages.keys()].filter((key) => !answered.has(key));
    expect(fresh).toHaveLength(1);
    await answer(fresh[0] as string);
    // The first crash was while it waited for an answer, this one is right behind one.
    if (at === 8) await crash();
  }
  const { result } = await taskWhen(modern, taskId, isEnded);
  const keys = [...messages.keys()];
  expect(keys).toHaveLength(3 + questions);
  const { together, again } = result.structuredContent.data;
  expect(new Set([...together, ...again])).toEqual(new Set(keys.map((key) => `to ${key}`)));
  expect(again).toEqual(keys.slice(3).map((key) => `to ${key}`));
  expect(traces.lines().filter((line) => line.startsWith("started"))).toHaveLength(3);
});

test("T12: every open question is shown, and answering some leaves the others open, also after a restart", async () => {
  const together = ["Tea?", "Milk?", "Sugar?", "Cake?"];
  let { server, modern } = await openBoth();
  const { taskId } = await startTask(modern, "ask_many", { file: openTraces().file, together });
  const open = async (count: number) => {
    const task = await taskWhen(
      modern,
      taskId,
      ({ inputRequests }) => Object.keys(inputRequests ?? {}).length === count,
    );
    expect(task.status).toBe("input_required");
    return new Map(
      Object.entries(task.inputRequests as Record<string, Fields>).map(([key, { params }]) => [
        params.message as string,
        key,
      ]),
    );
  };
  const all = await open(4);
  expect([...all.keys()].toSorted()).toEqual(together.toSorted());
  const answer = (...which: string[]) =>
    modern.request("tasks/update", {
      taskId,
      inputResponses: Object.fromEntries(which.map((message) => [all.get(message), accept(`some ${message}`)])),
    });
  await answer("Milk?");
  // The keys of those that are left are the same as before.
  all.delete("Milk?");
  expect(await open(3)).toEqual(all);

  await server.kill();
  ({ server, modern } = await openBoth(server));
  expect(await open(3)).toEqual(all);
  await answer("Sugar?", "Tea?");
  expect(await open(1)).toEqual(new Map([["Cake?", all.get("Cake?")]]));
  await server.kill();
  ({ server, modern } = await openBoth(server));
  expect(await open(1)).toEqual(new Map([["Cake?", all.get("Cake?")]]));
  await answer("Cake?");
  const task = await taskWhen(modern, taskId, isEnded);
  expect(task.result.structuredContent.data.together).toEqual(together.map((message) => `some ${message}`));
});
