import path from "node:path";
import Database from "better-sqlite3";
import { expect, test } from "vitest";
import { homeAt } from "../../src/paths.ts";
import { readHomeId } from "../../src/runtime/home-id.ts";
import { DaemonHome, dataOf, isRunning } from "../helpers/daemon.ts";
import { buildEarlierPackage } from "../helpers/earlier-package.ts";
import { waitFor } from "../helpers/meanwhile.ts";
import { executableIn } from "../helpers/package-copy.ts";
import { gate, taskIdOf } from "../helpers/project.ts";

/** The last commit that kept the local user of every home as `local`. */
const earlierCommit = "27f4ea8";

function callersIn(home: DaemonHome): readonly string[] {
  const db = new Database(path.join(home.home, "tasks.db"), { readonly: true });
  const found = db.prepare("select distinct caller from tasks order by caller").pluck().all() as string[];
  db.close();
  return found;
}

async function stop(pid: number): Promise<void> {
  process.kill(pid, "SIGTERM");
  await waitFor(
    () => !isRunning(pid),
    () => `daemon ${pid} did not stop`,
  );
}

test("a daemon of the version before keeps its live task and its client while the new one starts, and nothing is lost afterwards", async () => {
  const home = new DaemonHome();
  const executable = executableIn(buildEarlierPackage(earlierCommit, "0.0.9"));
  const client = await home.connect({ executable });
  const old = home.daemon();
  const [first, second] = [gate(), gate()];
  const earlier = taskIdOf(await client.call("work_long", first.input));
  await first.seen("started");
  expect(callersIn(home)).toEqual(["local"]);

  // The new one sees what the old one has made, and the other way round.
  const next = await home.connect();
  const daemon = await home.nextDaemon(old);
  expect(isRunning(old.pid)).toBe(true);
  expect(dataOf(await next.call("task_status", { job_id: earlier }))).toMatchObject({ status: "working" });
  const later = taskIdOf(await next.call("work_long", second.input));
  await second.seen("started");
  expect(callersIn(home)).toEqual(["local"]);
  for (const one of [client, next])
    expect(JSON.stringify(dataOf(await one.call("task_list", {})))).toMatch(new RegExp(`${later}.*${earlier}`));
  first.open();
  for (const one of [client, next])
    expect(dataOf(await one.call("task_result", { job_id: earlier, wait_seconds: 20 }))).toMatchObject({
      passed: first.input.file,
    });
  expect([first.starts(), second.starts()]).toEqual([1, 1]);

  // Once the old one has ended, and nobody else has the file open, the rows get the key of this home.
  await client.close();
  await stop(old.pid);
  second.open();
  expect(dataOf(await next.call("task_result", { job_id: later, wait_seconds: 20 }))).toMatchObject({
    passed: second.input.file,
  });
  await next.close();
  await stop(daemon.pid);
  const { stdout } = await home.terminal("tasks", "list", "--json");
  const { tasks } = JSON.parse(stdout) as { tasks: { taskId: string }[] };
  expect(tasks.map(({ taskId }) => taskId)).toEqual([later, earlier]);
  expect(callersIn(home)).toEqual([`local:${readHomeId(homeAt({ MEANWHILE_HOME: home.home }))}`]);

  // A process of the version before is refused from the start.
  const late = await home.connect({ executable });
  await expect(late.call("task_list", {})).rejects.toThrow("was written by a newer Meanwhile");
  expect(callersIn(home)).toHaveLength(1);
});
