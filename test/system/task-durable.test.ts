import { createHash } from "node:crypto";
import { connect as connectSocket } from "node:net";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import Database from "better-sqlite3";
import { expect, onTestFinished, test } from "vitest";
import { openStore } from "../../src/store/open.ts";
import { type Started, waitFor } from "../helpers/meanwhile.ts";
import { isEnded, openTraces, startTask, taskWhen } from "../helpers/place.ts";
import { casesOf } from "../helpers/rounds.ts";
import { accept, type Both, commands, connectBoth } from "../helpers/rules.ts";
import { openServer, type ProcessServer } from "../helpers/server.ts";
import { type Fields, modernMeta, takesTasks } from "../helpers/wire.ts";

const openBoth = async (before?: ProcessServer) =>
  await connectBoth(
    await openServer({ in: "process", commands, ...(before && { home: before.home, cwd: before.cwd }) }),
  );

test("T7: a result reads the same every time, also after a restart and after a late worker", async () => {
  const { server: first, core, modern } = await openBoth();
  const child = first.children[0] as Started;
  const traces = openTraces();
  const { taskId } = await startTask(modern, "work_long", { file: traces.file, isDeaf: true });
  const [, pid] = (await traces.shows("started")).split(" ");
  expect(Number(pid)).toBe(child.child.pid);
  const late = await startTask(core, "work_fail");
  await taskWhen(core, late.taskId, isEnded);

  // The worker stands still; it is taken for dead, and another one does the work.
  const second = await openBoth(first);
  await standStill(child, first);
  const store = await openStore(path.join(first.home, "tasks.db"));
  onTestFinished(() => store.close());
  const [worker] = (await store.workers()).filter((name) => name.split("|")[2] === pid);
  expect(await store.interrupt(worker as string)).toEqual([taskId]);
  await waitFor(() => traces.lines().filter((line) => line.startsWith("started")).length === 2);
  traces.release();
  await taskWhen(second.modern, taskId, isEnded);
  const reading = await read(second, [taskId, late.taskId]);
  // Its worker was lost, so it ran in a process of its own.
  expect(reading.texts[0]).toMatch(/"pid":\d+,"attempt":2/);
  expect(reading.texts[0]).not.toContain(`"pid":${pid},`);

  // It wakes up, finishes too, and comes too late.
  child.child.kill("SIGCONT");
  await waitFor(() => traces.lines().includes(`finished ${pid}`));
  await sleep(200);
  for (let times = 0; times < 20; times++)
    expect((await read(second, [taskId, late.taskId])).hashes).toEqual(reading.hashes);
  expect((await read({ core, modern }, [taskId, late.taskId])).hashes).toEqual(reading.hashes);

  await first.kill();
  await second.server.kill();
  const third = await openBoth(first);
  for (const [method, params] of [
    ["tasks/cancel", {}],
    ["tasks/update", { inputResponses: { q1: accept("late") } }],
  ] as const)
    await third.modern.request(method, { taskId, ...params });
  for (let times = 0; times < 20; times++)
    expect((await read(third, [taskId, late.taskId])).hashes).toEqual(reading.hashes);
});

/** Everything that can be read of ended tasks, in both revisions, and what it comes to. */
async function read(
  { core, modern }: Pick<Both, "core" | "modern">,
  taskIds: readonly string[],
): Promise<{ texts: string[]; hashes: string[] }> {
  const texts: string[] = [];
  for (const taskId of taskIds) {
    for (const [client, method] of [
      [modern, "tasks/get"],
      [core, "tasks/result"],
      [core, "tasks/get"],
    ] as const)
      texts.push(JSON.stringify((await client.request(method, { taskId })).result));
  }
  return { texts, hashes: texts.map((text) => createHash("sha256").update(text).digest("hex")) };
}

/** Stops a server where it holds no lock: frozen in the middle of a write it would keep everybody else from writing. */
async function standStill({ child }: Started, { home }: ProcessServer): Promise<void> {
  const db = new Database(path.join(home, "tasks.db"), { timeout: 0 });
  onTestFinished(() => void db.close());
  await waitFor(async () => {
    child.kill("SIGSTOP");
    await sleep(10);
    try {
      db.exec("begin immediate; rollback");
      return true;
    } catch {
      child.kill("SIGCONT");
      return undefined;
    }
  });
}

test("T8: a task whose handle was sent is there after kill -9", async () => {
  const kinds = casesOf(
    ["2026-07-28, at once", "2026-07-28, late", "2025-11-25, asked for", "2025-11-25, plain handle"],
    0,
    3,
  );
  const isKept = async (kind: string) => {
    const server = await openServer({
      in: "process",
      commands,
      config: { deferral: { patienceSeconds: 0.2 }, hosts: { scenario: { limitSeconds: 0.4 } } },
    });
    const url = await server.url();
    const traces = openTraces();
    const call = {
      name: /late|plain/.test(kind) ? "work_hold" : "work_long",
      arguments: { file: traces.file },
      ...(kind.includes("asked") && { task: {} }),
    };
    const isModern = kind.startsWith("2026");
    const headers = isModern
      ? { "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": call.name }
      : (await server.client("2025-11-25", { over: "http", hasNoStream: true })).headersOf();
    const params = { ...call, ...(isModern && { _meta: modernMeta(takesTasks) }) };
    const text = await killAtHandle(
      { url, ...(server.children[0] as Started) },
      { authorization: `Bearer ${server.token()}`, ...headers },
      JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params }),
    );
    const taskId = idIn(text) ?? "";

    const { core, modern } = await openBoth(server);
    expect((await modern.request("tasks/get", { taskId })).result, `${kind}: ${text}`).toMatchObject({
      taskId,
      status: "working",
    });
    expect((await core.request("tasks/get", { taskId })).result).toMatchObject({ taskId, status: "working" });
    traces.release();
    expect(await taskWhen(modern, taskId, isEnded)).toMatchObject({ status: "completed" });
  };
  await Promise.all(kinds.map(isKept));
});

/** The task that an answer names, in whatever text it is. */
const idIn = (text: string) => /\\?"(?:taskId|job_id)\\?":\\?"([\w-]+)\\?"/.exec(text)?.[1];

/**
 * Sends a request and kills the server with the first piece of its answer that holds a task's id; all that came of it.
 */
async function killAtHandle(
  { url, child, exited }: Started & { url: string },
  headers: Fields,
  body: string,
): Promise<string> {
  const socket = connectSocket(Number(new URL(url).port), "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  let text = "";
  const ended = new Promise<void>((resolve) => socket.on("close", () => resolve()));
  socket.on("error", () => undefined);
  socket.setEncoding("utf8").on("data", (part: string) => {
    text += part;
    if (idIn(text) !== undefined) child.kill("SIGKILL");
  });
  const lines = Object.entries({
    host: new URL(url).host,
    accept: "application/json, text/event-stream",
    "content-type": "application/json",
    ...headers,
  });
  socket.write(
    [
      "POST /mcp HTTP/1.1",
      ...lines.map((line) => line.join(": ")),
      `content-length: ${Buffer.byteLength(body)}`,
      "",
      body,
    ].join("\r\n"),
  );
  await Promise.all([ended, exited]);
  return text;
}
