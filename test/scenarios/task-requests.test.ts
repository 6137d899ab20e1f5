import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { FakeClock, settled } from "../helpers/fake-clock.ts";
import { waitFor } from "../helpers/meanwhile.ts";
import { isEnded, openTraces, roundTrips, startTask, taskWhen } from "../helpers/place.ts";
import { accept, commands, connectBoth, nextQuestions, shareServers } from "../helpers/rules.ts";
import { openServer } from "../helpers/server.ts";
import { type Fields, type Message, modernMeta, takesAll, takesTasks } from "../helpers/wire.ts";

const shared = shareServers();

test("T13: a request without the extension's capability gets no handle, and -32021 from tasks/get, update, cancel and a listen with taskIds", async () => {
  const clock = new FakeClock();
  const server = await openServer({
    in: "http",
    commands,
    clock,
    config: { deferral: { patienceSeconds: 0.2 }, hosts: { scenario: { limitSeconds: 0.4 } } },
  });
  const { modern } = await connectBoth(server);
  const pipe = await server.client("2026-07-28", { over: "stdio", capabilities: takesAll });
  const missing = {
    error: { code: -32021, data: { requiredCapabilities: { extensions: { "io.modelcontextprotocol/tasks": {} } } } },
    result: undefined,
  };
  const lacking: readonly Fields[] = [
    {},
    { elicitation: {} },
    { tasks: {} },
    { extensions: {} },
    { extensions: { "io.modelcontextprotocol/other": {} } },
  ];
  for (const client of [modern, pipe]) {
    const status = client === modern ? 400 : 0;
    // This very client takes tasks, and says so in its other requests.
    const { taskId } = await startTask(client, "work_long", { file: openTraces().file });
    for (const [at, capabilities] of lacking.entries()) {
      // What ends in time, and what takes longer than this client would wait, whether it takes tasks or not.
      const traces = openTraces();
      if (at > 0) traces.release();
      const call = { name: "work_long", arguments: { file: traces.file } };
      const answer = client.request("tools/call", call, { capabilities });
      const { result, error } = await (at > 0 ? answer : settled(clock, answer));
      expect({ error, resultType: result?.resultType, taskId: result?.taskId }).toEqual({
        error: undefined,
        resultType: "complete",
        taskId: undefined,
      });
      traces.release();
      for (const id of [taskId, randomUUID()]) {
        expect(await client.request("tasks/get", { taskId: id }, { capabilities })).toMatchObject({
          status,
          ...missing,
        });
        expect(
          await client.request("tasks/update", { taskId: id, inputResponses: {} }, { capabilities }),
        ).toMatchObject({ status, ...missing });
        expect(await client.request("tasks/cancel", { taskId: id }, { capabilities })).toMatchObject({
          status,
          ...missing,
        });
        for (const more of [{}, { toolsListChanged: true }])
          expect(
            await client.request(
              "subscriptions/listen",
              { notifications: { taskIds: [id], ...more } },
              { capabilities },
            ),
          ).toMatchObject({
            status,
            ...missing,
          });
      }
    }
    expect((await client.request("tasks/get", { taskId })).result).toMatchObject({ status: "working" });
  }
});

test("T14: notifications/cancelled with the id of the call that made a task leaves the task alone", async () => {
  const { core, modern } = await shared.both();
  const pipes = [await shared.core(), await shared.modern()];
  for (const client of [core, modern, ...pipes]) {
    const traces = openTraces();
    const asked = client.revision === "2025-11-25" ? { task: {} } : {};
    const call = client.start("tools/call", { name: "work_long", arguments: { file: traces.file }, ...asked });
    const { result } = await call.answer;
    const taskId = result?.taskId ?? result?.task.taskId;
    await traces.shows("started");
    const cancelled = { requestId: call.id, reason: "changed my mind" };
    await client.notify(
      "notifications/cancelled",
      client.revision === "2025-11-25" ? cancelled : { ...cancelled, _meta: modernMeta(takesTasks) },
    );
    // Waiting for the result is a call of its own: giving that up leaves the task alone, too.
    if (client.revision === "2025-11-25") {
      const waiting = client.start("tasks/result", { taskId });
      await roundTrips(client);
      await client.notify("notifications/cancelled", { requestId: waiting.id });
    }
    await roundTrips(client);
    expect((await client.request("tasks/get", { taskId })).result, client.revision).toMatchObject({
      status: "working",
    });
    traces.release();
    expect(await taskWhen(client, taskId, isEnded)).toMatchObject({ status: "completed" });
    expect(traces.lines().filter((line) => line.startsWith("stopped"))).toEqual([]);
  }
});

test("T20: notifications/tasks carries what tasks/get would return, and a subscriber to somebody else's task gets none", async () => {
  const { modern, server } = await shared.both();
  const [asks, works] = [openTraces(), openTraces()];
  const ids = [
    (await startTask(modern, "ask_many", { file: asks.file, together: ["Tea?", "Milk?"] })).taskId,
    (await startTask(modern, "work_long", { file: works.file })).taskId,
    (await startTask(modern, "work_protocol")).taskId,
    (await startTask(modern, "work_fail")).taskId,
  ];
  const stranger = await server.client("2026-07-28", { capabilities: takesAll, isAnonymous: true });
  const pipe = await shared.modern();
  const [own, foreign] = await Promise.all([modern.listen(ids), stranger.listen(ids)]);
  const listening = pipe.start("subscriptions/listen", { notifications: { taskIds: ids } });
  expect(own.acknowledged).toEqual({ taskIds: ids });
  expect(foreign.acknowledged).toEqual({ taskIds: [] });

  const told = (messages: readonly Message[], taskId: string) =>
    messages
      .filter(({ method, params }) => method === "notifications/tasks" && params?.taskId === taskId)
      .map(({ params }) => params ?? {});
  /** The newest notification is the task as it is now; of a live one, only the time it has lived is another by then. */
  const agrees = async (taskId: string, isRight: (task: Fields) => boolean) => {
    const { resultType: _type, _meta: _server, ...now } = await taskWhen(modern, taskId, isRight);
    const live = isEnded(now) ? {} : { ttlMs: expect.any(Number) };
    for (const [messages, subscription] of [
      [own.stream.messages, "listening"],
      [pipe.received, listening.id],
    ] as const) {
      const newest = await waitFor(() => told(messages, taskId).findLast(isRight));
      expect(newest).toEqual({ ...now, ...live, _meta: { "io.modelcontextprotocol/subscriptionId": subscription } });
    }
  };
  const [asking, working, failing, refusing] = ids as [string, string, string, string];
  const asksFor = (count: number) => (task: Fields) => Object.keys(task.inputRequests ?? {}).length === count;
  await agrees(asking, asksFor(2));
  const [tea, milk] = Object.keys(
    (await modern.request("tasks/get", { taskId: asking })).result?.inputRequests ?? {},
  ) as [string, string];
  await modern.request("tasks/update", { taskId: asking, inputResponses: { [tea]: accept("green") } });
  await agrees(asking, asksFor(1));
  await modern.request("tasks/update", { taskId: asking, inputResponses: { [milk]: accept("none") } });
  for (const taskId of [asking, failing, refusing]) await agrees(taskId, isEnded);
  await works.shows("started");
  await agrees(working, ({ status }) => status === "working");
  await modern.request("tasks/cancel", { taskId: working });
  await agrees(working, isEnded);
  for (const client of [modern, pipe, stranger]) await roundTrips(client);
  // The end is told once, and it is the last that is told.
  for (const taskId of ids)
    for (const messages of [own.stream.messages, pipe.received])
      expect(told(messages, taskId).findIndex(isEnded)).toBe(told(messages, taskId).length - 1);
  expect(foreign.stream.of("notifications/tasks")).toEqual([]);
});

test("T21: a tasks request whose Mcp-Name is missing or names another task is refused with -32020 and HTTP 400", async () => {
  const { modern } = await shared.both();
  const { taskId } = await startTask(modern, "ask_many", { file: openTraces().file, again: 1 });
  const { taskId: another } = await startTask(modern, "work_long", { file: openTraces().file });
  const [key] = Object.keys(await nextQuestions(modern, taskId)) as [string];
  const base64 = (text: string) => `=?base64?${Buffer.from(text).toString("base64")}?=`;
  const requests = [
    ["tasks/get", {}],
    ["tasks/update", { inputResponses: { [key]: accept("x") } }],
    ["tasks/cancel", {}],
  ] as const;
  for (const [method, more] of requests) {
    for (const name of [
      undefined,
      "",
      another,
      randomUUID(),
      taskId.toUpperCase(),
      `${taskId}, ${taskId}`,
      base64(another),
      "=?base64?%%?=",
      method,
    ]) {
      const answer = await modern.request(method, { taskId, ...more }, { headers: { "mcp-name": name } });
      expect(answer, `${method} as ${name}`).toMatchObject({ status: 400, error: { code: -32020 }, result: undefined });
    }
  }
  // None of them was done.
  expect((await modern.request("tasks/get", { taskId })).result).toMatchObject({
    status: "input_required",
    inputRequests: { [key]: {} },
  });
  expect((await modern.request("tasks/get", { taskId: another })).result).toMatchObject({ status: "working" });
  for (const [method, more] of requests) {
    const encoded = await modern.request(method, { taskId, ...more }, { headers: { "mcp-name": base64(taskId) } });
    expect(encoded, `${method}, encoded`).toMatchObject({ status: 200, error: undefined });
  }
});

test("T22: a tool called against its taskSupport, as a task or not as one, is refused with -32601", async () => {
  const { core, modern } = await shared.both();
  const pipe = await shared.core();
  const refused = { error: { code: -32601 }, result: undefined };
  for (const client of [core, pipe]) {
    const supports = ((await client.request("tools/list")).result?.tools ?? []) as Fields[];
    const supportOf = (name: string) => supports.find((tool) => tool.name === name)?.execution?.taskSupport;
    for (const [name, support, asTask, isRight] of [
      ["work_required", "required", true, true],
      ["work_required", "required", false, false],
      ["work_forbidden", "forbidden", true, false],
      ["work_forbidden", "forbidden", false, true],
      ["work_long", "optional", true, true],
      ["work_long", "optional", false, true],
    ] as const) {
      expect(supportOf(name)).toBe(support);
      const traces = openTraces();
      traces.release();
      const answer = await client.request("tools/call", {
        name,
        arguments: { file: traces.file },
        ...(asTask && { task: {} }),
      });
      const what = `${name} ${asTask ? "as a task" : "plainly"}`;
      if (isRight) {
        expect(answer.error, what).toBeUndefined();
        expect(answer.result?.task !== undefined, what).toBe(asTask);
        await traces.shows("finished");
      } else {
        expect(answer, what).toMatchObject(refused);
        await roundTrips(client);
        expect(traces.lines(), what).toEqual([]);
      }
    }
  }
  // A client that takes tasks is not given one either: the server does not call against it itself.
  const traces = openTraces();
  const begun = modern.start("tools/call", { name: "work_forbidden", arguments: { file: traces.file } });
  await traces.shows("started");
  await roundTrips(modern);
  traces.release();
  expect((await begun.answer).result).toMatchObject({ resultType: "complete", structuredContent: { success: true } });
});
