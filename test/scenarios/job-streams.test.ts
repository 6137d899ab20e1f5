import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { waitFor } from "../helpers/meanwhile.ts";
import { openPlace, openTraces } from "../helpers/place.ts";
import { SessionClient, type Stream } from "../helpers/wire.ts";

/** Job notifications over HTTP, where the client decides when it listens. */

const commands = path.resolve(import.meta.dirname, "../fixtures/rules/commands");
const takesJobs = { experimental: { "meanwhile/jobs": {} } };

async function open(more: object = {}) {
  const place = openPlace({ commands });
  const { url } = await place.startHttp();
  const client = await SessionClient.begin(url, { headers: place.local(), capabilities: { ...takesJobs, ...more } });
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
  return { client, start, ended };
}

const resultsOn = (stream: Stream) => stream.of("notifications/tool_result").map(({ params }) => params);

test("a result is kept until its client opens a stream, and then comes once", async () => {
  const { client, start, ended } = await open();
  const jobs = [await start("work_nap", { ms: 100, label: "a" }), await start("work_nap", { ms: 100, label: "b" })];
  for (const job of jobs) await ended(job);
  const stream = await client.openStream();
  await waitFor(
    () => resultsOn(stream).length >= 2,
    () => `two results were expected, and there came ${JSON.stringify(stream.messages)}`,
  );
  const later = await start("work_nap", { ms: 50, label: "c" });
  await waitFor(() => resultsOn(stream).length >= 3);
  expect(resultsOn(stream)).toHaveLength(3);
  const labels = Object.fromEntries(resultsOn(stream).map((params) => [params?.job_id, params?.result.data.label]));
  expect(labels).toEqual({ [jobs[0] ?? ""]: "a", [jobs[1] ?? ""]: "b", [later]: "c" });
});

test("a stream that was closed before the end does not take the result with it", async () => {
  const { client, start, ended } = await open();
  const first = await client.openStream();
  const traces = openTraces();
  const job = await start("work_long", { file: traces.file });
  await traces.shows("started");
  first.drop();
  // The server has to see it go.
  await sleep(200);
  traces.release();
  await ended(job);
  const second = await client.openStream();
  await waitFor(
    () => resultsOn(second).length === 1,
    () => `the result was expected, and there came ${JSON.stringify(second.messages)}`,
  );
  expect(resultsOn(second)[0]).toMatchObject({ job_id: job, result: { success: true, data: { attempt: 1 } } });
});

describe("what a job has asked before its client opened a stream", () => {
  /** A job that waits for an answer, and what then comes on the stream. */
  async function ask(more: object) {
    const { client, start } = await open(more);
    const traces = openTraces();
    const job = await start("ask_many", { file: traces.file, together: ["Which one?"] });
    await traces.shows("started");
    await waitFor(async () => {
      const { result } = await client.request("tools/call", { name: "task_status", arguments: { job_id: job } });
      return result?.structuredContent.data.status === "input_required" ? true : undefined;
    });
    // It is told what it can be told by then.
    await sleep(300);
    return { client, job, stream: await client.openStream() };
  }

  test("is asked on it, where the client can show questions; and the job ends", async () => {
    const { client, job, stream } = await ask({ elicitation: {} });
    const asked = await waitFor(() => stream.of("elicitation/create")[0]);
    expect(asked.params).toMatchObject({ message: "Which one?" });
    await client.respond(asked.id ?? "", { action: "accept", content: { text: "this one" } });
    await waitFor(() => resultsOn(stream).length === 1);
    expect(resultsOn(stream)[0]).toMatchObject({
      job_id: job,
      result: { success: true, data: { together: ["this one"] } },
    });
  });

  test("is told on it, with how to answer, where the client cannot show questions", async () => {
    const { job, stream } = await ask({});
    const told = await waitFor(
      () => stream.of("notifications/progress")[0],
      () => `nobody told how to answer; there came ${JSON.stringify(stream.messages)}`,
    );
    expect(told.params).toMatchObject({
      job_id: job,
      message: expect.stringMatching(`Which one\\?.*meanwhile tasks answer ${job}`),
    });
  });
});
