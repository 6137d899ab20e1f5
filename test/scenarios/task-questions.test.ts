import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { isEnded, openTraces, startTask, taskWhen } from "../helpers/place.ts";
import { accept, nextQuestions, shareServers } from "../helpers/rules.ts";
import type { Fields, WireClient } from "../helpers/wire.ts";

const shared = shareServers();

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
