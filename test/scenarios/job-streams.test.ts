import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { FakeClock, pass, settled } from "../helpers/fake-clock.ts";
import { openTraces } from "../helpers/place.ts";
import { openServer } from "../helpers/server.ts";
import { waitFor } from "../helpers/wait-for.ts";
import { type Stream, takesJobs } from "../helpers/wire.ts";

/** Job notifications over HTTP, where the client decides when it listens. */

const commands = path.resolve(import.meta.dirname, "../fixtures/rules/commands");

async function open(more: object = {}) {
  const clock = new FakeClock();
  const server = await openServer({ in: "http", commands, clock });
  const client = await server.client("2025-11-25", { capabilities: { ...takesJobs, ...more }, hasNoStream: true });
  const start = async (tool: string, input: object) => {
    const { result } = await client.request("tools/call", { name: tool, arguments: input });
    return result?.structuredContent.data.job_id as string;
  };
  /** Through another door than notifications. */
  const ended = (job_id: string) =>
    waitFor(async () => {
      const { result } = await client.request("tools/call", { name: "task_status", arguments: { job_id } });
      return result?.structuredContent.data.status === "completed" ? true : undefined;
    });
  /** Waits for what needs time on the server's clock. */
  const wait = <T>(promise: Promise<T>) => settled(clock, promise);
  return { client, clock, start, ended, wait };
}

/** The response to the next GET request of any server in this process. */
function nextStream(): Promise<ServerResponse> {
  const name = "http.server.request.start";
  return new Promise((resolve) => {
    const onStart = (message: unknown) => {
      const { request, response } = message as { request: IncomingMessage; response: ServerResponse };
      if (request.method !== "GET") return;
      unsubscribe(name, onStart);
      resolve(response);
    };
    subscribe(name, onStart);
  });
}

const resultsOn = (stream: Stream) => stream.of("notifications/tool_result").map(({ params }) => params);

test("a result is kept until its client opens a stream, and then comes once", async () => {
  const { client, start, ended, wait } = await open();
  const jobs = [await start("work_nap", { ms: 100, label: "a" }), await start("work_nap", { ms: 100, label: "b" })];
  for (const job of jobs) await wait(ended(job));
  const stream = await client.openStream();
  await wait(
    waitFor(
      () => resultsOn(stream).length >= 2,
      () => `two results were expected, and there came ${JSON.stringify(stream.messages)}`,
    ),
  );
  const later = await start("work_nap", { ms: 50, label: "c" });
  await wait(waitFor(() => resultsOn(stream).length >= 3));
  expect(resultsOn(stream)).toHaveLength(3);
  const labels = Object.fromEntries(resultsOn(stream).map((params) => [params?.job_id, params?.result.data.label]));
  expect(labels).toEqual({ [jobs[0] ?? ""]: "a", [jobs[1] ?? ""]: "b", [later]: "c" });
});

test("a stream that was closed before the end does not take the result with it", async () => {
  const { client, start, ended, wait } = await open();
  const opened = nextStream();
  const first = await client.openStream();
  const closed = once(await opened, "close");
  const traces = openTraces();
  const job = await start("work_long", { file: traces.file });
  await traces.shows("started");
  first.drop();
  // The server has seen it go.
  await closed;
  traces.release();
  await wait(ended(job));
  const second = await client.openStream();
  await wait(
    waitFor(
      () => resultsOn(second).length === 1,
      () => `the result was expected, and there came ${JSON.stringify(second.messages)}`,
    ),
  );
  expect(resultsOn(second)[0]).toMatchObject({ job_id: job, result: { success: true, data: { attempt: 1 } } });
});

describe("what a job has asked before its client opened a stream", () => {
  /** A job that waits for an answer, and what then comes on the stream. */
  async function ask(more: object) {
    const { client, clock, start, wait } = await open(more);
    const traces = openTraces();
    const job = await start("ask_many", { file: traces.file, together: ["Which one?"] });
    await traces.shows("started");
    await wait(
      waitFor(async () => {
        const { result } = await client.request("tools/call", { name: "task_status", arguments: { job_id: job } });
        return result?.structuredContent.data.status === "input_required" ? true : undefined;
      }),
    );
    // It is told what it can be told by then.
    await pass(clock, 1_000);
    return { client, job, wait, stream: await client.openStream() };
  }

  test("is asked on it, where the client can show questions; and the job ends", async () => {
    const { client, job, stream, wait } = await ask({ elicitation: {} });
    const asked = await wait(waitFor(() => stream.of("elicitation/create")[0]));
    expect(asked.params).toMatchObject({ message: "Which one?" });
    await client.respond(asked.id ?? "", { action: "accept", content: { text: "this one" } });
    await wait(waitFor(() => resultsOn(stream).length === 1));
    expect(resultsOn(stream)[0]).toMatchObject({
      job_id: job,
      result: { success: true, data: { together: ["this one"] } },
    });
  });

  test("is told on it, with how to answer, where the client cannot show questions", async () => {
    const { job, stream, wait } = await ask({});
    const told = await wait(
      waitFor(
        () => stream.of("notifications/progress")[0],
        () => `nobody told how to answer; there came ${JSON.stringify(stream.messages)}`,
      ),
    );
    expect(told.params).toMatchObject({
      job_id: job,
      message: expect.stringMatching(`Which one\\?.*meanwhile tasks answer ${job}`),
    });
  });
});
