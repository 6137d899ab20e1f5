import { copyFileSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { homeAt } from "../../../src/paths.ts";
import { readHomeId } from "../../../src/runtime/home-id.ts";
import { openStore } from "../../../src/store/open.ts";
import { FakeClock } from "../../../src/testing/fake-clock.ts";
import { runCli, startCli } from "../../helpers/cli.ts";
import { temporaryFolder } from "../../helpers/home.ts";
import { Bench, done } from "../../store-suite/cases/bench.ts";

/** A file outside all homes with rows of `local`, and homes that use it. */
async function place() {
  const file = path.join(temporaryFolder(), "tasks.db");
  const store = await openStore(file, { clock: new FakeClock(Date.now()) });
  const bench = new Bench(store, new FakeClock(Date.now()));
  await bench.make({ taskId: "11111111-live", caller: "local", project: "reports", idempotencyKey: "once" });
  await bench.store.settle(
    await bench.begin({ taskId: "22222222-ended", caller: "local", project: "reports" }, "w1"),
    done,
  );
  await bench.make({ taskId: "33333333-live", caller: "local", project: "mail" });
  await bench.make({ taskId: "44444444-live", caller: "anonymous", project: "mail" });
  await store.shared.sessions.keep(
    { sessionId: "s", caller: "mail local", greeting: "{}", silenceMs: 60_000_000 },
    9,
    "n",
  );
  const home = () => {
    const env = { MEANWHILE_HOME: temporaryFolder(), MEANWHILE_STORE: file };
    const run = (...words: string[]) => runCli(words, { env });
    const listed = async () => {
      const { stdout } = await run("tasks", "list", "--json");
      return (JSON.parse(stdout) as { tasks: { taskId: string }[] }).tasks.map(({ taskId }) => taskId).sort();
    };
    return { run, listed, folder: env.MEANWHILE_HOME, id: () => readHomeId(homeAt(env)) };
  };
  return { file, store, home, close: () => store.close() };
}

test("store migrate gives the rows of no home to the home that runs it, and --undo gives them back", async () => {
  const { file, home, close } = await place();
  const [one, other] = [home(), home()];
  expect([await one.listed(), await other.listed()]).toEqual([[], []]);
  const problem =
    "No caller sees 3 tasks and 1 session of the local user of a version that did not tell homes apart: `meanwhile store migrate` gives them to the home that runs it.";
  const checked = await one.run("store", "check");
  expect(checked).toMatchObject({ code: 1, stdout: expect.stringContaining(`✗ ${problem}\n`) });
  expect(JSON.parse((await one.run("store", "check", "--json")).stdout)).toMatchObject({
    earlier: { tasks: 3, sessions: 1 },
    problems: [problem],
  });

  // Nobody can be asked here.
  const asked = await one.run("store", "migrate");
  expect(asked.code).toBe(1);
  expect(asked.stdout).toBe(
    [
      `Nothing to do: ${file} has schema 11.`,
      `${file} has 3 tasks and 1 session of the local user of a version that did not tell homes apart. No caller sees them:`,
      "  project mail: 1 task and 1 session",
      "  project reports: 2 tasks",
      `Back the store up before you take them: sqlite3 '${file}' ".backup '${file}.backup'"`,
      "First stop every server and worker of that version.",
      "",
    ].join("\n"),
  );
  expect(asked.stderr).toContain("run the same line again with --yes");
  expect(await one.listed()).toEqual([]);

  const taken = await one.run("store", "migrate", "--yes");
  expect(taken).toMatchObject({ code: 0, stdout: expect.stringContaining("This home took 3 tasks and 1 session; ") });
  expect(await one.listed()).toEqual(["11111111-live", "22222222-ended", "33333333-live"]);
  expect(await other.listed()).toEqual([]);
  expect((await one.run("store", "check")).stdout).toContain("Nothing is wrong with it.");
  expect((await other.run("store", "migrate", "--yes")).stdout).toBe(`Nothing to do: ${file} has schema 11.\n`);
  expect((await other.run("store", "migrate", "--undo", "--yes")).stdout).toContain(
    "Nothing to do: this home took no rows",
  );

  const back = await one.run("store", "migrate", "--undo", "--yes");
  expect(back).toMatchObject({
    code: 0,
    stdout:
      "This home gave back 3 tasks and 1 session:\n  project mail: 1 task and 1 session\n  project reports: 2 tasks\n",
  });
  expect(await one.listed()).toEqual([]);
  expect((await one.run("store", "check")).stdout).toContain(problem);
  expect((await other.run("store", "migrate", "--yes")).code).toBe(0);
  expect(await other.listed()).toEqual(["11111111-live", "22222222-ended", "33333333-live"]);
  // The ID of a home is for its operator alone.
  expect(taken.stdout + taken.stderr + checked.stdout).not.toContain(one.id());
  await close();
});

test("rows that a home made itself are not given back, and its idempotency keys stay its own", async () => {
  const { store, home, close } = await place();
  const one = home();
  await one.listed();
  const key = `local:${one.id()}`;
  const own = new Bench(store, new FakeClock());
  await own.make({ taskId: "55555555-live", caller: key, project: "reports", idempotencyKey: "once" });
  await one.run("store", "migrate", "--yes");
  expect(await store.get({ caller: key }, "11111111-live")).toMatchObject({ idempotencyKey: undefined });
  expect(await store.get({ caller: key }, "55555555-live")).toMatchObject({ idempotencyKey: "once" });
  await one.run("store", "migrate", "--undo", "--yes");
  expect(await one.listed()).toEqual(["55555555-live"]);
  expect(await store.get({ caller: "local" }, "11111111-live")).toMatchObject({ idempotencyKey: "once" });
  await close();
});

test("at a terminal store migrate asks, and leaves everything as it is without a yes", async () => {
  const { file, home, close } = await place();
  const one = home();
  const migrate = async (key: string) => {
    const run = startCli(["store", "migrate"], {
      env: { MEANWHILE_HOME: one.folder, MEANWHILE_STORE: file },
      screen: { columns: 80, rows: 24 },
    });
    await run.says(/Give them to this home\?/);
    run.stdin.write(key);
    return await run.exited;
  };
  expect([await migrate("\r"), await one.listed()]).toEqual([1, []]);
  expect([await migrate("\x1b"), await one.listed()]).toEqual([1, []]);
  expect(await migrate("y")).toBe(0);
  expect(await one.listed()).toHaveLength(3);
  await close();
});

test("in the file of a home the rows are the home's, and nothing is asked", async () => {
  const { file, close } = await place();
  await close();
  const home = temporaryFolder();
  const run = (...words: string[]) => runCli(words, { env: { MEANWHILE_HOME: home } });
  copyFileSync(file, path.join(home, "tasks.db"));
  expect((await run("store", "check")).stdout).toContain("Nothing is wrong with it.");
  expect(await run("store", "migrate")).toMatchObject({ code: 0, stdout: expect.stringContaining("has schema 11.") });
  const { stdout } = await run("tasks", "list", "--json");
  expect((JSON.parse(stdout) as { tasks: object[] }).tasks).toHaveLength(3);
  expect(stdout).not.toContain(readFileSync(path.join(home, "token"), "utf8").trim());
});
