import path from "node:path";
import Database from "better-sqlite3";
import { expect, test } from "vitest";
import { bucketOf } from "../../src/task/quantiles.ts";
import { temporaryFolder } from "../helpers/home.ts";
import { waitFor } from "../helpers/meanwhile.ts";
import { openTraces, startTask } from "../helpers/place.ts";
import { openServer } from "../helpers/server.ts";
import type { WireClient } from "../helpers/wire.ts";

/** Several servers on one home: one may run what another has begun, and one project's durations are not another's. */

const commands = path.resolve(import.meta.dirname, "../fixtures/rules/commands");

const progressOf = ({ received }: WireClient, token: string) =>
  received
    .filter(({ method, params }) => method === "notifications/progress" && params?.progressToken === token)
    .map(({ params }) => params?.progress as number);

test("the last progress value arrives also when another process runs the task", async () => {
  const server = await openServer({ in: "process", commands });
  const pipe = await server.client("2025-11-25");
  // With all places of the first taken, only the other one can run anything.
  const holders = Array.from({ length: 16 }, openTraces);
  for (const { file } of holders) await startTask(pipe, "work_long", { file });
  for (const { shows } of holders) await shows(`started ${server.children[0]?.child.pid}`);
  await server.url();
  const probe = openTraces();
  probe.release();
  const { taskId: probed } = await startTask(pipe, "work_long", { file: probe.file });
  const { result } = await pipe.request("tasks/result", { taskId: probed });
  expect(result?.structuredContent.data).toMatchObject({ pid: server.children[1]?.child.pid });

  const runs = await Promise.all(
    [1, 2, 3, 4].map(async (at) => {
      const token = `task ${at}`;
      const { taskId } = await startTask(
        pipe,
        "report_steps",
        { at, steps: 4, gapMs: 10 },
        { _meta: { progressToken: token } },
      );
      const waiting = `result ${at}`;
      await pipe.request("tasks/result", { taskId, _meta: { progressToken: waiting } });
      return [token, waiting];
    }),
  );
  for (const token of runs.flat()) {
    const values = await waitFor(
      () => progressOf(pipe, token).at(-1) === 4 && progressOf(pipe, token),
      () => `${token}: the last value is missing from ${JSON.stringify(progressOf(pipe, token))}`,
    );
    expect(values, token).toEqual([...new Set(values)].toSorted((a, b) => a - b));
  }
});

test("how long a command of the same name takes in another project counts for nothing here", async () => {
  const home = temporaryFolder();
  // Each has a config file of its own, and so is a project of its own.
  const open = (cwd: string) => openServer({ in: "http", commands, config: {}, home, cwd, store: "sqlite" });
  const projects = [temporaryFolder(), temporaryFolder()] as const;
  const before = await open(projects[0]);
  const pipe = await before.client("2026-07-28", { over: "stdio" });
  for (let at = 0; at < 6; at++) await step(pipe);
  await before.close();
  // As if each had taken thousands of times as long.
  const db = new Database(path.join(home, "tasks.db"));
  expect(db.prepare("update durations set bucket = bucket + ?").run(bucketOf(12_000)).changes).toBeGreaterThan(0);
  db.close();

  const seen = await Promise.all(
    projects.map(async (cwd) => {
      const server = await open(cwd);
      const client = await server.client("tasks-2026");
      const stranger = await server.client("2026-07-28", { isAnonymous: true });
      const { tools } = (await stranger.request("tools/list")).result as {
        tools: { name: string; _meta: Record<string, object> }[];
      };
      const stats = (await stranger.request("resources/read", { uri: "meanwhile://stats" })).result?.contents[0]
        .text as string;
      return {
        hint: tools.find(({ name }) => name === "report_steps")?._meta["meanwhile/tool"],
        runs: (JSON.parse(stats) as { commands: { command: string; runs: number }[] }).commands.map(
          ({ command, runs }) => [command, runs],
        ),
        answered: (await step(client)).result?.resultType,
      };
    }),
  );
  expect(seen).toEqual([
    { hint: { async: false, taskModeRecommended: true }, runs: [["report_steps", 6]], answered: "task" },
    { hint: { async: false }, runs: [], answered: "complete" },
  ]);
});

const step = (client: WireClient) =>
  client.request("tools/call", { name: "report_steps", arguments: { at: 1, steps: 1, gapMs: 5 } });
