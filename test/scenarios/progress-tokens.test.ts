import path from "node:path";
import { describe, expect, test } from "vitest";
import { listProgress, progressOf } from "../../src/index.ts";
import { runCli } from "../helpers/cli.ts";
import { shareAmongTests, temporaryFolder } from "../helpers/home.ts";
import { gate, taskIdOf } from "../helpers/project.ts";
import { openServer } from "../helpers/server.ts";
import { waitFor } from "../helpers/wait-for.ts";

/** Progress by token, for whoever is not the client: the terminal, and an author's own code. */

const commands = path.resolve(import.meta.dirname, "../fixtures/deferral/commands");

/** `meanwhile …` on this home. */
const terminal = (home: string, ...words: string[]) => runCli(words, { env: { MEANWHILE_HOME: home } });

describe("a live call that a client follows by a token", () => {
  const open = shareAmongTests(async () => {
    const server = await openServer({ in: "http", commands, store: "sqlite" });
    return { home: server.home, client: await server.client("2025-11-25"), options: { home: server.home } };
  });
  const json = ({ stdout }: { stdout: string }) => JSON.parse(stdout) as unknown;

  test("is told by `tasks progress` and by progressOf and listProgress, while it runs and not after", async () => {
    const { home, client, options } = await open();
    const work = gate();
    const { answer } = client.startCall("work_gated", work.input, { meta: { progressToken: "abc-1" } });
    const listed = await waitFor(async () => (await listProgress(options)).find(({ token }) => token === "abc-1"));
    expect(listed).toMatchObject({ tool: "work_gated", status: "working" });
    expect(await progressOf("abc-1", options)).toMatchObject({
      ok: true,
      progress: { token: "abc-1", taskId: listed.taskId },
      others: [],
    });
    const [table, all, one] = await Promise.all([
      terminal(home, "tasks", "progress"),
      terminal(home, "tasks", "progress", "--json"),
      terminal(home, "tasks", "progress", "abc-1", "--json"),
    ]);
    expect(table.stdout).toMatch(/^Token +Command +Status +Done +Latest\nabc-1 +work_gated +working +- *\n$/);
    expect(json(all)).toMatchObject([{ token: "abc-1", taskId: listed.taskId }]);
    expect(json(one)).toMatchObject({ token: "abc-1", tool: "work_gated", taskId: listed.taskId });
    work.open();
    await answer;
    await waitFor(async () => ((await listProgress(options)).length === 0 ? true : undefined));
    expect(await progressOf("abc-1", options)).toMatchObject({ ok: false, error: "token_not_found" });
  });

  test("says how far it is", async () => {
    const { client, options } = await open();
    const { answer } = client.startCall("work_sync", {}, { meta: { progressToken: 12 }, task: {} });
    const told = await waitFor(async () => {
      const found = await progressOf(12, options);
      return found.ok && found.progress.percentage !== undefined ? found.progress : undefined;
    });
    expect(told).toMatchObject({
      token: 12,
      tool: "work_sync",
      value: expect.any(Number),
      total: 500,
      message: expect.stringMatching(/^Processing \d+ of 500 files/),
    });
    await client.request("tasks/result", { taskId: taskIdOf((await answer).result ?? {}) });
  });

  test("that is none is one sentence with its code and the way on, and exit code 1", async () => {
    const { home } = await open();
    const [unknown, remote] = await Promise.all([
      terminal(home, "tasks", "progress", "nobody's"),
      terminal(home, "tasks", "progress", "7", "--target", "http://127.0.0.1:1/mcp"),
    ]);
    expect(unknown).toMatchObject({ code: 1, stdout: "" });
    expect(unknown.stderr).toContain(`No live call has the progress token "nobody's" (token_not_found): it has ended`);
    expect(unknown.stderr).toContain("`meanwhile tasks progress` lists those there are.");
    expect(remote).toMatchObject({ code: 2, stderr: expect.stringContaining("tasks progress is for your own calls") });
  });

  test("is nobody's where nothing has run, and looking makes no home", async () => {
    const options = { home: `${temporaryFolder()}/none` };
    expect([await listProgress(options), await progressOf(1, options)]).toMatchObject([
      [],
      { ok: false, error: "token_not_found" },
    ]);
  });
});

describe("the token of a client that is dead", () => {
  test.each([
    ["a call that runs on as a task", {}],
    ["a task", { task: {} }],
  ])("is gone with it, and the work goes on: %s", async (_what, how) => {
    const server = await openServer({ in: "daemon", commands });
    const options = { home: server.home };
    const [dying, living] = [await server.client("2025-11-25"), await server.client("2025-11-25")];
    const works = [gate(), gate()];
    dying.startCall("work_gated", works[0]?.input, { meta: { progressToken: "dead" }, ...how });
    living.startCall("work_gated", works[1]?.input, { meta: { progressToken: "alive" }, ...how });
    for (const work of works) await work.seen("started");
    const tokens = async () => (await listProgress(options)).map(({ token }) => token).toSorted();
    const [dead] = await waitFor(async () => {
      const all = await listProgress(options);
      return all.length === 2 ? all.filter(({ token }) => token === "dead") : undefined;
    });
    // Its stdin ends, as when its host dies.
    void dying.close();
    await waitFor(async () => ((await tokens()).join() === "alive" ? true : undefined));
    expect(await progressOf("dead", options)).toMatchObject({ ok: false, error: "token_not_found" });
    for (const work of works) work.open();
    for (const work of works) await work.seen("ended");
    const { stdout } = await waitFor(async () => {
      const shown = await terminal(server.home, "tasks", "show", dead?.taskId ?? "", "--json");
      return shown.stdout.includes('"completed"') ? shown : undefined;
    });
    expect(JSON.parse(stdout)).toMatchObject({ status: "completed" });
    await waitFor(() => works.every((work) => work.starts() === 1));
  });
});
