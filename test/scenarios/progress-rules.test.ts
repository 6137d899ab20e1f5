import { setTimeout as realSleep } from "node:timers/promises";
import { Client as SdkClient } from "@modelcontextprotocol/sdk/client/index.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { describe, expect, onTestFinished, test } from "vitest";
import { sleep } from "../../src/clock.ts";
import { FakeClock, turns } from "../helpers/fake-clock.ts";
import { isEnded, openTraces, startTask } from "../helpers/place.ts";
import { commands, commandsOn, expectRising, progressOf, timedTest } from "../helpers/rules.ts";
import { overPipes } from "../helpers/sdk-transport.ts";
import { openServer } from "../helpers/server.ts";
import type { Fields, Message, WireClient } from "../helpers/wire.ts";

/** A server, and a stdio client of each revision. */
async function open() {
  const clock = new FakeClock();
  const server = await openServer({ in: "memory", commands: commandsOn(clock), clock });
  const [core, modern] = [await server.client("2025-11-25"), await server.client("2026-07-28")];
  return { clock, core, modern };
}

/** Looks after every few turns of the event loop: the clock does not get far between two looks. */
async function until<T>(look: () => T | undefined | false): Promise<T> {
  for (;;) {
    const found = look();
    if (found !== undefined && found !== false) return found;
    await turns(2);
  }
}

describe("P1", () => {
  test(
    "P1: progress rises with every notification, whatever a command reports, on both revisions",
    timedTest(open, async ({ core, modern }) => {
      const rises = async (pipe: WireClient, total: number | undefined) => {
        const token = `of ${total}`;
        const { result } = await pipe.request("tools/call", {
          name: "report_odd",
          arguments: { gapMs: 105, total },
          _meta: { progressToken: token },
        });
        expect(result).toMatchObject({ structuredContent: { success: true } });
        const sent = progressOf(pipe.received, token);
        expectRising(sent);
        expect(sent.at(-1)).toMatchObject({
          progress: 8,
          message: "8 on attempt 1",
          ...(total !== undefined && { total }),
        });
        // What cannot be a value is still news, if it comes with words.
        expect(sent.map(({ message }) => message)).toContain("NaN on attempt 1");
        for (const each of sent) expect(each.total).toBe(total);
      };
      await Promise.all([core, modern].flatMap((pipe) => [undefined, 10].map((total) => rises(pipe, total))));
    }),
  );

  test(
    "P1: it rises across a retry too, on the call's token and on that of tasks/result, though the second attempt begins lower",
    timedTest(open, async ({ core: pipe }) => {
      const { taskId } = await startTask(
        pipe,
        "report_odd",
        { gapMs: 210, total: 10, fails: true },
        { _meta: { progressToken: "call" } },
      );
      const { result } = await pipe.request("tasks/result", { taskId, _meta: { progressToken: "result" } });
      expect(result).toMatchObject({ structuredContent: { success: true, data: { attempt: 2 } } });
      for (const token of ["call", "result"]) {
        const sent = progressOf(pipe.received, token);
        expectRising(sent);
        const messages = sent.map(({ message }) => message as string);
        expect(messages).toContain("6 on attempt 1");
        expect(messages.some((message) => /^[12] on attempt 2$/.test(message))).toBe(true);
        expect(sent.at(-1), token).toMatchObject({ progress: 8, message: "8 on attempt 2" });
      }
    }),
  );
});

test(
  "P2: no progress is sent after the end of a call or a task",
  timedTest(open, async ({ clock, core, modern }) => {
    const call = (client: WireClient, token: string, runMs: number, more: Fields = {}) => {
      const traces = openTraces();
      const input = { file: traces.file, runMs, afterMs: 300 };
      return {
        traces,
        ...client.start("tools/call", {
          name: "report_after",
          arguments: input,
          _meta: { progressToken: token },
          ...more,
        }),
      };
    };
    /** Nothing with this token after this place in the log, however long the command goes on; and something before it. */
    const isSilentFrom = async (client: WireClient, token: string, from: number, silent: () => Promise<unknown>) => {
      await silent();
      await sleep(clock, 250);
      expect(progressOf(client.received.slice(0, from), token).length, `${token}: before`).toBeGreaterThan(1);
      expect(progressOf(client.received.slice(from), token), `${token}: after`).toEqual([]);
    };
    /** The place behind the first message that fits, once it is there. */
    const after = (client: WireClient, fits: (message: Message) => boolean) =>
      until(() => client.received.findIndex(fits) + 1 || undefined);
    const isOver = (client: WireClient, id: unknown) =>
      after(client, (message) => message.id === id && message.method === undefined);

    const checks: Promise<void>[] = [];
    for (const client of [core, modern]) {
      // Answered.
      const plain = call(client, "answered", 1_500);
      checks.push(
        isOver(client, plain.id).then((from) =>
          isSilentFrom(client, "answered", from, () => plain.traces.shows("silent")),
        ),
      );
      // Cancelled by its client: after what was on the way when the server heard of it.
      const stopped = call(client, "cancelled", 4_000);
      const cancel = async () => {
        await until(() => progressOf(client.received, "cancelled").length > 1);
        await client.notify("notifications/cancelled", { requestId: stopped.id });
        const echo = await client.request("tools/list");
        expect(echo.error).toBeUndefined();
        await isSilentFrom(client, "cancelled", client.received.length, () => stopped.traces.shows("silent"));
        expect(client.received.filter(({ id, method }) => id === stopped.id && method === undefined)).toEqual([]);
      };
      checks.push(cancel());
    }
    // A task that ends by itself: on the call's token, and on that of whoever waits for its result.
    const task = call(core, "task", 2_500, { task: {} });
    const taskId = (await task.answer).result?.task.taskId as string;
    const waiting = core.start("tasks/result", { taskId, _meta: { progressToken: "waiting" } });
    checks.push(
      isOver(core, waiting.id).then((from) => isSilentFrom(core, "waiting", from, () => task.traces.shows("silent"))),
    );
    const ended = (id: string) =>
      after(
        core,
        ({ method, params }) => method === "notifications/tasks/status" && params?.taskId === id && isEnded(params),
      );
    checks.push(ended(taskId).then((from) => isSilentFrom(core, "task", from, () => task.traces.shows("silent"))));
    // A task that is cancelled, and whose command does not care.
    const doomed = call(core, "doomed", 4_000, { task: {} });
    const doomedId = (await doomed.answer).result?.task.taskId as string;
    await until(() => progressOf(core.received, "doomed").length > 1);
    const cancelling = core.start("tasks/cancel", { taskId: doomedId });
    expect((await cancelling.answer).result).toMatchObject({ status: "cancelled" });
    checks.push(
      isOver(core, cancelling.id).then((from) =>
        isSilentFrom(core, "doomed", from, () => doomed.traces.shows("silent")),
      ),
    );
    await Promise.all(checks);
  }),
);

test(
  "P6: on 2026-07-28 nothing more is sent for a call that was cancelled: no progress, no log line, no answer",
  timedTest(open, async ({ clock, modern: pipe }) => {
    const traces = openTraces();
    const _meta = { progressToken: "mine", "io.modelcontextprotocol/logLevel": "debug" };
    const call = pipe.start("tools/call", {
      name: "report_after",
      arguments: { file: traces.file, runMs: 800, afterMs: 100 },
      _meta,
    });
    await until(
      () =>
        pipe.received.filter(({ method }) => method === "notifications/message").length > 5 &&
        progressOf(pipe.received, "mine").length > 1,
    );
    await pipe.notify("notifications/cancelled", { requestId: call.id });
    await traces.shows("told to stop");
    // What was on the way when the server heard of it has come by the time of this answer.
    await pipe.request("tools/list");
    const from = pipe.received.length;
    await traces.shows("silent");
    await sleep(clock, 100);
    expect(new Set(pipe.received.slice(from).map(({ method, id }) => method ?? id))).toEqual(new Set());
  }),
);

test("hundreds of concurrent calls that report progress: strictly increasing, the last value delivered, nothing after the end, none lost before the response", async () => {
  const calls = 250;
  const steps = 4;
  const transport = overPipes((await openServer({ in: "memory", commands })).openPipes());
  const client = new SdkClient({ name: "scenario", version: "1.0.0" });
  onTestFinished(() => client.close());
  await client.connect(transport as Transport);
  /** What came over the pipe, by the call's id, which is its token too, and by which read. */
  const wire = new Map<unknown, { readonly value: number | undefined; readonly read: number }[]>();
  let read = 0;
  let isReading = false;
  const deliver = transport.onmessage;
  transport.onmessage = (message) => {
    if (!isReading) {
      read += 1;
      isReading = true;
      // The client handles all that one read has brought before anything else.
      queueMicrotask(() => (isReading = false));
    }
    const { id, method, params } = message as Message;
    const token = method === "notifications/progress" ? params?.progressToken : id;
    if (token !== undefined) wire.set(token, [...(wire.get(token) ?? []), { value: params?.progress, read }]);
    deliver?.(message);
  };
  const heard: { readonly at: number; readonly told: readonly number[] }[] = [];
  const call = async (at: number) => {
    const told: number[] = [];
    let isAnswered = false;
    const onprogress = ({ progress }: { progress: number }) => {
      expect(isAnswered, `call ${at} was answered already`).toBe(false);
      told.push(progress);
    };
    const result = await client.callTool({ name: "report_steps", arguments: { at, steps, gapMs: 110 } }, undefined, {
      onprogress,
      timeout: 30_000,
    });
    isAnswered = true;
    expect(result.structuredContent).toMatchObject({ success: true, data: { at } });
    heard.push({ at, told });
  };
  const running: Promise<void>[] = [];
  for (let at = 0; at < calls; at++) {
    running.push(call(at));
    // The pipe takes only so much at a time.
    if (at % 10 === 9) await realSleep(1);
  }
  await Promise.all(running);
  await realSleep(50);

  const streams = [...wire]
    .filter(([, events]) => events.length > 1)
    .toSorted(([one], [other]) => Number(one) - Number(other));
  expect(streams).toHaveLength(calls);
  const inOrder = heard.toSorted((one, other) => one.at - other.at);
  let cut = 0;
  for (const [index, [, events]] of streams.entries()) {
    const answer = events.at(-1);
    expect(
      events.findIndex(({ value }) => value === undefined),
      "the answer is the last that comes",
    ).toBe(events.length - 1);
    const values = events.slice(0, -1).map(({ value }) => value as number);
    expect(values.filter((value, at) => value <= (values[at - 1] ?? 0))).toEqual([]);
    expect(values.at(-1)).toBe(steps);
    // What an SDK's client reads in one piece with the answer it drops; all the rest reaches the callback.
    const readEarlier = events.slice(0, -1).filter((event) => event.read !== answer?.read);
    expect(inOrder[index]?.told).toEqual(readEarlier.map(({ value }) => value));
    if (readEarlier.length < values.length) cut += 1;
  }
  // The server leaves a gap before the answer, so that only a client that is kept from reading for so long loses
  // something. Without it all would.
  process.stdout.write(`${calls - cut} of ${calls} callbacks were told the last value\n`);
  expect(cut).toBeLessThan(calls * 0.9);
});
