import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { killNine } from "../helpers/meanwhile.ts";
import { isEnded, openTraces, startTask, taskWhen } from "../helpers/place.ts";
import { accept, nextQuestions, openBoth, shareServers } from "../helpers/rules.ts";
import type { Fields, WireClient } from "../helpers/wire.ts";

const shared = shareServers();

test("T10: no key is used twice in a task's life, also across a crash", async () => {
  const traces = openTraces();
  let { place, server, modern } = await openBoth();
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
    await killNine(server);
    ({ server, modern } = await openBoth(place));
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

test("T11: an answer to a key that is not open is ignored, __proto__ and constructor among them", async () => {
  const { modern, core } = await shared.both();
  const pipe = await shared.modern();
  const { taskId } = await startTask(modern, "ask_many", { file: openTraces().file, again: 2 });
  const [first] = Object.keys(await nextQuestions(modern, taskId));
  const odd = [
    "__proto__",
    "constructor",
    "toString",
    "hasOwnProperty",
    "q0",
    "q2",
    "Q1",
    " q1",
    "",
    `${first}.`,
    randomUUID(),
  ];
  // JSON.parse makes an own property of `__proto__`; an object literal would not.
  const responses = JSON.parse(
    `{${odd.map((key) => `${JSON.stringify(key)}:${JSON.stringify(accept("ignore me"))}`).join(",")}}`,
  ) as Fields;
  const ignored = async (client: WireClient, inputResponses: Fields) => {
    const before = (await modern.request("tasks/get", { taskId })).result;
    const { result, error } = await client.request("tasks/update", { taskId, inputResponses });
    expect({ resultType: result?.resultType, error }).toEqual({ resultType: "complete", error: undefined });
    const after = (await modern.request("tasks/get", { taskId })).result;
    const { ttlMs: _before, ...was } = before ?? {};
    const { ttlMs: _after, ...is } = after ?? {};
    expect(is).toEqual(was);
  };
  for (const client of [modern, pipe]) {
    await ignored(client, responses);
    for (const key of odd)
      await ignored(client, JSON.parse(`{${JSON.stringify(key)}:${JSON.stringify(accept("ignore me"))}}`) as Fields);
    await ignored(client, {});
  }
  await modern.request("tasks/update", {
    taskId,
    inputResponses: { [first as string]: accept("first"), constructor: accept("ignore me") },
  });
  const [second] = Object.keys(await nextQuestions(modern, taskId, new Map([[first as string, 1]])));
  // The first one is answered: another answer to it comes too late.
  await ignored(pipe, { [first as string]: accept("another") });
  await pipe.request("tasks/update", {
    taskId,
    inputResponses: { [second as string]: accept("second"), [first as string]: { action: "decline" } },
  });
  const task = await taskWhen(modern, taskId, isEnded);
  expect(task.result.structuredContent).toMatchObject({
    success: true,
    data: { again: ["first", "second"], isPolluted: false },
  });
  // And after the end there is nothing that could be answered.
  const ended = (await core.request("tasks/result", { taskId })).result;
  await ignored(modern, { [second as string]: accept("late") });
  expect((await core.request("tasks/result", { taskId })).result).toEqual(ended);
});

test("T12: every open question is shown, and answering some leaves the others open, also after a restart", async () => {
  const together = ["Tea?", "Milk?", "Sugar?", "Cake?"];
  let { place, server, modern } = await openBoth();
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

  await killNine(server);
  ({ server, modern } = await openBoth(place));
  expect(await open(3)).toEqual(all);
  await answer("Sugar?", "Tea?");
  expect(await open(1)).toEqual(new Map([["Cake?", all.get("Cake?")]]));
  await killNine(server);
  ({ server, modern } = await openBoth(place));
  expect(await open(1)).toEqual(new Map([["Cake?", all.get("Cake?")]]));
  await answer("Cake?");
  const task = await taskWhen(modern, taskId, isEnded);
  expect(task.result.structuredContent.data.together).toEqual(together.map((message) => `some ${message}`));
});
