import { rmSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { DaemonHome, dataOf, isRunning, kill } from "../helpers/daemon.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";
import { waitFor } from "../helpers/meanwhile.ts";
import { gate, taskIdOf } from "../helpers/project.ts";
import { rounds } from "../helpers/rounds.ts";
import type { Result } from "../helpers/wire.ts";

/** What clients see of a daemon that ends by kill -9 or leaves, and of the next daemon. */

interface Said {
  readonly pid: number;
}

test("a subscription goes on with the next daemon, and its client hears once that it stands", async () => {
  const home = new DaemonHome();
  const commands = writeFiles(temporaryFolder(), { "a/one.ts": commandNamed("one") });
  const words = ["--no-bundled", "--commands", commands];
  const modern = await home.connect({ revision: "2026-07-28", words });
  const legacy = await home.connect({ words });
  modern.start("subscriptions/listen", { notifications: { toolsListChanged: true } });
  const heard = (method: string) => modern.received.filter((message) => message.method === method).length;
  await waitFor(() => heard("notifications/subscriptions/acknowledged") === 1);
  for (let round = 1; round <= 2; round++) {
    const before = home.daemon();
    kill(before.pid);
    await home.nextDaemon(before);
    for (const client of [modern, legacy]) await client.request("tools/list");
    const counts = [modern, legacy].map(
      (client) => client.received.filter(({ method }) => method === "notifications/tools/list_changed").length,
    );
    writeFiles(commands, { [`a/two${round}.ts`]: commandNamed(`two${round}`) });
    for (const [at, client] of [modern, legacy].entries()) {
      await waitFor(
        () =>
          client.received.filter(({ method }) => method === "notifications/tools/list_changed").length >
          (counts[at] as number),
        () => `the ${at === 0 ? "modern" : "legacy"} client heard nothing after crash ${round}`,
      );
    }
  }
  expect(heard("notifications/subscriptions/acknowledged")).toBe(1);
});

const commandNamed = (name: string) =>
  `import { defineCommand } from "meanwhile"; export default defineCommand({ summary: "${name}", run: () => ({}) });`;

test("many fronts that find their daemon dead start one, not many", async () => {
  const home = new DaemonHome();
  const clients = await Promise.all(Array.from({ length: rounds.daemonClients }, () => home.connect()));
  const times = rounds.daemonDeaths;
  for (let round = 0; round < times; round++) {
    const before = home.daemon();
    kill(before.pid);
    await home.nextDaemon(before);
    const results = await Promise.all(clients.map((client) => client.request("tools/list")));
    for (const { result } of results) expect((result as Result).tools).toBeInstanceOf(Array);
    await home.hasOneDaemon();
  }
  expect(home.log().match(/the daemon listens/g)).toHaveLength(times + 1);
});

describe("a daemon leaves", () => {
  test("when it was idle for long enough, and not while a task of a client that has gone still runs", async () => {
    const home = new DaemonHome({ env: { MEANWHILE_IDLE_SECONDS: "1" } });
    const client = await home.connect();
    const { input, open, seen } = gate();
    const id = taskIdOf(await client.call("work_long", input));
    await seen("started");
    const { pid } = home.daemon();
    await client.close();
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    expect(isRunning(pid)).toBe(true);
    open();
    await waitFor(() => !isRunning(pid));
    expect(home.daemons()).toEqual([]);
    expect(home.log()).toContain("the daemon leaves: nobody needs it");
    const back = await home.connect();
    expect(dataOf(await back.call("task_result", { job_id: id }))).toMatchObject({ passed: input.file });
  });

  test("when its socket is deleted; whoever was connected goes on with the next", async () => {
    const home = new DaemonHome();
    const client = await home.connect();
    const before = home.daemon();
    rmSync(before.socket);
    await waitFor(() => !isRunning(before.pid));
    // What is on its way to a daemon that has just left is asked again when it is a list, and a call only when it was
    // not heard.
    await client.request("tools/list");
    expect(dataOf<Said>(await client.call("say_back")).pid).toBe(home.daemon().pid);
    await home.hasOneDaemon();
  });
});
