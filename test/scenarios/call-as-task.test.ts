import { existsSync, writeFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { connect } from "../../src/client/index.ts";
import { defineCommand } from "../../src/command/command.ts";
import { runCli } from "../helpers/cli.ts";
import { temporaryFolder } from "../helpers/home.ts";
import { openServer, placeOf } from "../helpers/server.ts";
import { waitFor } from "../helpers/wait-for.ts";
import type { Fields, WireClient } from "../helpers/wire.ts";

/**
 * A client of 2026-07-28 that would rather have a task says so to our own server; the revision itself has no word for
 * it.
 */

const hint = "meanwhile/task";
const hour = 60 * 60 * 1000;
/** Counted on while the task runs; a day would be the server's own. */
const isAnHour = (ttlMs: number) => ttlMs === hour;

/** Commands that wait until their file is there. */
const waiting = (more: object = {}) =>
  defineCommand({
    summary: "Wait for a file",
    input: z.object({ file: z.string() }),
    async run({ file }, { signal }) {
      while (!existsSync(file)) await sleep(10, undefined, { signal });
      return { passed: file };
    },
    ...more,
  });
const commands = { work_wait: waiting(), work_never: waiting({ taskSupport: "forbidden" }) };

/** A server with these commands, and the file that they wait for. */
async function open(place: "memory" | "http") {
  const file = path.join(temporaryFolder(), "go");
  const server = await openServer({ in: place, commands, store: "sqlite" });
  return { server, file, release: () => writeFileSync(file, "") };
}

const call = (wire: WireClient, name: string, file: unknown, _meta: Fields) =>
  wire.request("tools/call", { name, arguments: { file }, _meta });

describe.each(["stdio", "HTTP"] as const)("over %s", (transport) => {
  test("the hint makes a task at once, with its time to live, where the client takes tasks and the tool may be one", async () => {
    const { server, file, release } = await open(placeOf[transport]);
    const able = await server.client("tasks-2026");
    const { result } = await call(able, "work_wait", file, { [hint]: { ttlMs: hour } });
    expect(existsSync(file), "nobody has opened it yet").toBe(false);
    expect(result).toMatchObject({ resultType: "task", status: "working" });
    expect(result?.ttlMs).toSatisfy(isAnHour);
    const shown = await runCli(["tasks", "show", (result as Fields).taskId, "--json"], {
      env: { MEANWHILE_HOME: server.home },
    });
    expect(JSON.parse(shown.stdout)).toMatchObject({ reason: "the client asked for a task" });

    const refused = await Promise.all([
      call(able, "work_wait", file, { [hint]: true }),
      call(able, "work_wait", file, { [hint]: { ttlMs: 0 } }),
      call(able, "work_wait", file, { [hint]: { ttlMs: "soon" } }),
    ]);
    expect(refused.map(({ error }) => error)).toEqual([
      { code: -32602, message: '`_meta["meanwhile/task"]` must be an object, e.g. { ttlMs: 60000 }.' },
      { code: -32602, message: "`ttl` must be a positive whole number of milliseconds." },
      { code: -32602, message: "`ttl` must be a positive whole number of milliseconds." },
    ]);
    expect((await call(able, "work_wait", 5, { [hint]: {} })).result, "input is checked first").toMatchObject({
      resultType: "complete",
      isError: true,
    });
    release();
    expect((await call(able, "work_never", file, { [hint]: {} })).result).toMatchObject({
      resultType: "complete",
      structuredContent: { success: true },
    });
    const unable = await server.client("2026-07-28");
    const answers = await Promise.all([
      call(unable, "work_wait", file, { [hint]: {} }),
      call(unable, "work_wait", file, { [hint]: true }),
    ]);
    for (const answer of answers)
      expect(answer.result).toMatchObject({ resultType: "complete", structuredContent: { success: true } });
  });
});

test.each(["2026-07-28", "2025-11-25"])("asTask, detach and ttlMs mean the same on %s", async (revision) => {
  const { server, file, release } = await open("http");
  const url = await server.url();
  const client = await connect({ url }, { revision });
  onTestFinished(() => client.close());
  const handle = await client.callTool("work_wait", { file }, { detach: true, ttlMs: hour });
  expect(existsSync(file), "nobody has opened it yet").toBe(false);
  const state = await handle.state();
  expect(state.status).toBe("working");
  expect(state.ttlMs).toSatisfy(isAnHour);
  const seen: unknown[] = [];
  const called = client.callTool(
    "work_wait",
    { file },
    { asTask: true, isNew: true, onTask: ({ status }) => seen.push(status) },
  );
  await waitFor(() => seen.includes("working"));
  release();
  expect(await called).toMatchObject({ structuredContent: { data: { passed: file } } });
  expect(await handle.result()).toMatchObject({ structuredContent: { data: { passed: file } } });
});

test("meanwhile call --detach leaves, and says so where the server made no task of it", async () => {
  const { server, file, release } = await open("http");
  const url = await server.url();
  const left = await runCli(["call", url, "work_wait", `file=${file}`, "--detach", "--task-ttl", String(hour)]);
  expect(existsSync(file), "nobody has opened it yet").toBe(false);
  expect(left).toMatchObject({ code: 0, stdout: expect.stringMatching(/^[0-9a-f-]{36}\n$/) });
  release();
  const [back, inline] = await Promise.all([
    runCli(["tasks", "result", left.stdout.trim(), "--wait", "--target", url]),
    runCli(["call", url, "work_never", `file=${file}`, "--detach"]),
  ]);
  expect(back).toMatchObject({ code: 0, stdout: `passed: ${file}\n` });
  expect(inline).toMatchObject({
    code: 0,
    stdout: `passed: ${file}\n`,
    stderr: expect.stringContaining("! The server answered without making a task of it; this is its result.\n"),
  });
});
