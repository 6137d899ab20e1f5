import { describe, expect, test } from "vitest";
import { FakeClock, pass, settled } from "../helpers/fake-clock.ts";
import { waitFor } from "../helpers/meanwhile.ts";
import { isEnded, openTraces, startTask, taskWhen } from "../helpers/place.ts";
import { commands, shareServers } from "../helpers/rules.ts";
import { openServer } from "../helpers/server.ts";
import { type Answer, type Fields, overStreams, WireClient } from "../helpers/wire.ts";

const shared = shareServers();
const unknownTask = { error: { code: -32602 }, result: undefined };

describe("T15", () => {
  const day = 24 * 60 * 60 * 1000;
  const iso = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

  test("T15: every answer about a task carries createdAt, lastUpdatedAt and the ttl that was asked for", async () => {
    const { core, modern } = await shared.both();
    await core.openStream();
    // The task lives on while these are collected, and with it its ttl.
    const seen: Fields[] = [];
    const { taskId, task } = await startTask(
      core,
      "ask_many",
      { file: openTraces().file, again: 1 },
      { task: { ttl: 60_000 } },
    );
    const { stream } = await modern.listen([taskId]);
    seen.push(
      task,
      (await core.request("tasks/get", { taskId })).result ?? {},
      (await modern.request("tasks/get", { taskId })).result ?? {},
    );
    seen.push(
      ...(((await core.request("tasks/list")).result?.tasks ?? []) as Fields[]).filter(
        (listed) => listed.taskId === taskId,
      ),
    );
    await taskWhen(modern, taskId, ({ status }) => status === "input_required");
    seen.push((await core.request("tasks/cancel", { taskId })).result ?? {});
    seen.push(
      (await core.request("tasks/get", { taskId })).result ?? {},
      (await modern.request("tasks/get", { taskId })).result ?? {},
    );
    await waitFor(() => stream.of("notifications/tasks").some(({ params }) => params?.status === "cancelled"));
    await waitFor(() =>
      core.received.some(
        ({ method, params }) => method === "notifications/tasks/status" && params?.status === "cancelled",
      ),
    );
    seen.push(...stream.of("notifications/tasks").map(({ params }) => params ?? {}));
    seen.push(
      ...core.received
        .filter(({ method }) => method === "notifications/tasks/status")
        .map(({ params }) => params ?? {}),
    );
    expect(seen.length).toBeGreaterThanOrEqual(10);
    for (const each of seen) {
      expect(each).toMatchObject({ taskId, createdAt: task.createdAt, lastUpdatedAt: expect.stringMatching(iso) });
      expect(each.createdAt).toMatch(iso);
      expect(Date.parse(each.lastUpdatedAt)).toBeGreaterThanOrEqual(Date.parse(each.createdAt));
      expect(each.ttl ?? each.ttlMs, "as it was asked for").toBe(60_000);
    }
  });

  test("T15: a wish that is no positive whole number is refused, one that is too large is capped and told so", async () => {
    const { stdin, stdout, close } = (await openServer({ in: "memory", commands })).openPipes();
    const pipe = await new WireClient(overStreams(stdin, stdout, close), { revision: "2025-11-25" }).begin();
    const ask = async (ttl: string): Promise<Answer> => {
      const id = `ttl ${ttl}`;
      const params = `{"name":"work_nap","arguments":{"ms":1},"task":{"ttl":${ttl}}}`;
      stdin.write(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"method":"tools/call","params":${params}}\n`);
      const message = await waitFor(() => pipe.received.find((candidate) => candidate.id === id));
      return { ...message, result: message.result, error: message.error } as Answer;
    };
    // `null` is how 2025-11-25 writes "unlimited". Nothing is kept without limit here, so it is refused rather than
    // answered with less.
    for (const ttl of [
      "0",
      "-1",
      "1.5",
      '"5"',
      "null",
      "1e400",
      "-1e400",
      String(2 ** 53),
      "[5]",
      "{}",
      "true",
      "1e-9",
    ])
      expect(await ask(ttl), ttl).toMatchObject({
        error: { code: -32602, message: expect.stringContaining("ttl") },
        result: undefined,
      });
    for (const [ttl, expected] of [
      ["1", 1],
      ["5000", 5_000],
      [String(7 * day), 7 * day],
      [String(7 * day + 1), 7 * day],
      [String(2 ** 31), 7 * day],
      [String(2 ** 53 - 1), 7 * day],
      ["1e12", 7 * day],
    ] as const) {
      const { result } = await ask(ttl);
      expect(result?.task.ttl, ttl).toBe(expected);
    }
    const unasked = await startTask(pipe, "work_nap", { ms: 1 }, { task: {} });
    expect(unasked.task.ttl).toBe(day);
  });

  test("T15: the ttl is true: so long a result is there, and not longer", async () => {
    const clock = new FakeClock();
    const pipe = await (await openServer({ in: "memory", commands, clock })).client("2025-11-25");
    const { taskId } = await startTask(pipe, "work_nap", { ms: 10 }, { task: { ttl: 600_000 } });
    const ended = await settled(clock, taskWhen(pipe, taskId, isEnded));
    // The ttl counts from the end of the run.
    const until = Date.parse(ended.lastUpdatedAt) + ended.ttl;
    expect(until - clock.now()).toBeGreaterThan(0);
    await pass(clock, until - clock.now() - 1);
    expect((await pipe.request("tasks/get", { taskId })).result).toEqual(ended);
    await pass(clock, 2);
    expect(await pipe.request("tasks/get", { taskId })).toMatchObject(unknownTask);
    expect(await pipe.request("tasks/result", { taskId })).toMatchObject(unknownTask);
    expect((await pipe.request("tasks/list")).result).toEqual({ tasks: [] });
  });
});
