import {
  chmodSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { DaemonHome, daemonProcesses, isRunning, kill } from "../helpers/daemon.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";
import { runMeanwhile, startMeanwhile, waitFor } from "../helpers/meanwhile.ts";
import { overPipes, WireClient } from "../helpers/wire.ts";

// What people do to homes, folders and processes without thinking of a daemon.

const hello =
  'import { defineCommand } from "meanwhile"; export default defineCommand({ summary: "Hello", effects: "read", run: () => ({ hello: true }) });';

test.for(["2025-11-25", "2026-07-28"])(
  "the first command that `meanwhile new` makes in an empty folder reaches the client that is connected there (%s)",
  async (revision) => {
    const home = new DaemonHome();
    rmSync(path.join(home.cwd, "a file"));
    const client = await home.connect({ revision, words: [] });
    const names = async () =>
      ((await client.request("tools/list")).result as unknown as { tools: { name: string }[] }).tools.map(
        ({ name }) => name,
      );
    expect(await names()).toContain("config");
    expect(await names()).not.toContain("hello_world");
    expect(
      await runMeanwhile(["new", "hello/world"], { cwd: home.cwd, env: { MEANWHILE_HOME: home.home } }),
    ).toMatchObject({ code: 0 });
    await expect.poll(names, { timeout: 40_000 }).toContain("hello_world");
    expect((await client.call("hello_world", { name: "Ada" })).structuredContent).toMatchObject({
      data: { greeting: "Hello, Ada!" },
    });
    writeFiles(home.cwd, { "commands/hello/all.ts": hello });
    await expect.poll(names, { timeout: 40_000 }).toContain("hello_all");
  },
);

test("a project that `meanwhile init` makes reaches the client that is connected there", async () => {
  const home = new DaemonHome();
  const client = await home.connect({ words: [] });
  const names = async () =>
    ((await client.request("tools/list")).result as { tools: { name: string }[] }).tools.map(({ name }) => name);
  expect(await names()).toContain("config");
  const env = { MEANWHILE_HOME: home.home };
  expect(await runMeanwhile(["init", "--name", "acme"], { cwd: home.cwd, env })).toMatchObject({ code: 0 });
  await expect.poll(names, { timeout: 40_000 }).toContain("report_build");
  expect(await names()).not.toContain("config");
});

test("a session works where its host has started it; -C says whose commands are served", async () => {
  const mine = writeFiles(temporaryFolder(), { "work/notes/a.md": "a", "served/notes/a.md": "b" });
  const env = { HOME: mine, MEANWHILE_HOME: path.join(mine, "home") };
  const front = startMeanwhile(["-C", path.join(mine, "served"), "serve"], { cwd: path.join(mine, "work"), env });
  const client = await new WireClient(overPipes(front.child), { revision: "2025-11-25" }).begin();
  onTestFinished(async () => {
    await client.close();
    await runMeanwhile(["daemon", "stop", "--all", "--now"], { env });
  });
  const checked = (await client.call("monitor_check", { path: "notes/a.md" })).structuredContent;
  expect(checked).toMatchObject({ success: true, data: { path: path.join(realpathSync(mine), "work/notes/a.md") } });
});

test("the one daemon of the bundled commands works in the folder of each session", async () => {
  const home = new DaemonHome();
  const mine = writeFiles(temporaryFolder(), { "one/notes/a.md": "a", "two/notes/a.md": "b" });
  const env = { HOME: mine };
  for (const folder of ["one", "two"]) {
    const client = await home.connect({ words: [], cwd: path.join(mine, folder), env });
    const check = async (given: string) => (await client.call("monitor_check", { path: given })).structuredContent;
    expect(await check("notes/a.md")).toMatchObject({
      success: true,
      data: { path: path.join(mine, folder, "notes/a.md") },
    });
    expect(await check(path.join(mine, folder, "notes/a.md"))).toMatchObject({
      success: true,
      data: { path: path.join(mine, folder, "notes/a.md") },
    });
    expect(await check(`~/${folder}/notes/a.md`)).toMatchObject({ success: true });
  }
  await home.hasOneDaemon();
});

describe("a home", () => {
  test.for([95, 100, 105, 180])("whose path has %i bytes serves the bundled commands", async (bytes) => {
    const home = new DaemonHome();
    const folder = path.join(home.home, "x".repeat(Math.max(1, bytes - Buffer.byteLength(home.home) - 1)));
    const client = await home.connect({ words: [], env: { MEANWHILE_HOME: folder } });
    expect((await client.call("config_path")).structuredContent).toMatchObject({ data: { home: folder } });
    await runMeanwhile(["daemon", "stop"], { cwd: home.cwd, env: { MEANWHILE_HOME: folder } });
  });

  test("that everybody may read is made its user's alone, and a planted log is not written through", async () => {
    const home = new DaemonHome();
    mkdirSync(home.home);
    chmodSync(home.home, 0o755);
    const victim = path.join(temporaryFolder(), "victim");
    writeFileSync(victim, "");
    symlinkSync(victim, path.join(home.home, "daemon.log"));
    const refused = home.start();
    expect(await refused.exited).toBe(70);
    expect(refused.stderr()).toMatch(/^✗ The log \S+daemon\.log cannot be written: [^\n]+; remove what is there\.\n$/);
    expect(readFileSync(victim, "utf8")).toBe("");
    expect(statSync(home.home).mode & 0o777).toBe(0o700);
    rmSync(path.join(home.home, "daemon.log"));
    await home.connect();
  });

  test("that is a file is told of, and is not a home without daemons", async () => {
    const home = new DaemonHome();
    writeFileSync(home.home, "");
    for (const verb of ["status", "stop", "restart"]) {
      const { code, stderr } = await home.terminal("daemon", verb);
      expect({ verb, code, stderr }).toEqual({
        verb,
        code: 70,
        stderr: expect.stringMatching(/^✗ Cannot (read|use) the home folder [^\n]+\n$/),
      });
    }
  });
});

test("a daemon that is stopped by the system is shown, named, and ended by --now", async () => {
  const home = new DaemonHome();
  const client = await home.connect();
  const { pid } = home.daemon();
  process.kill(pid, "SIGSTOP");
  const shown = await home.terminal("daemon", "status");
  expect(shown.stdout).toContain(`Daemon ${pid}  does not answer; meanwhile daemon stop --now ends it`);
  expect(await home.terminal("daemon", "stop", "--now")).toMatchObject({
    code: 0,
    stderr: expect.stringContaining(`Daemon ${pid} has ended`),
  });
  expect((await client.call("say_back")).isError).not.toBe(true);
});

test("a front that finds its daemon blocked says, within its 30 s, which command blocks it and since when, and `daemon status` does too", async () => {
  const home = new DaemonHome();
  const client = await home.connect();
  const { pid } = home.daemon();
  const file = path.join(home.cwd, "gate");
  const call = client.startCall("job_blocks", { file });
  await waitFor(() => readOr(file) !== "");
  const late = home.start();
  const shown = await home.terminal("daemon", "status");
  expect(shown.stdout).toMatch(
    new RegExp(
      `Daemon ${pid}  does not answer, blocked for \\d+ s, since \\d\\d:\\d\\d:\\d\\d, while job_blocks ran; meanwhile daemon stop --now ends it`,
    ),
  );
  expect(await late.exited).toBe(70);
  expect(late.stderr()).toMatch(
    new RegExp(
      `^✗ Daemon ${pid} did not answer within 30 s: it was blocked for \\d+ s, since \\d\\d:\\d\\d:\\d\\d, while job_blocks ran \\(isolation: "process" prevents that\\); [^\\n]+\\n$`,
    ),
  );
  writeFileSync(`${file}.go`, "");
  expect((await call.answer).result?.structuredContent).toMatchObject({ data: { passed: file } });
});

describe("a config file", () => {
  test("that breaks while a session goes on neither ends it nor hides the daemons", async () => {
    const home = new DaemonHome();
    const config = path.join(home.cwd, "meanwhile.config.ts");
    writeFileSync(config, "export default {};");
    const client = await home.connect();
    const { pid } = home.daemon();
    writeFileSync(config, "export default {");
    const shown = await home.terminal("daemon", "status");
    expect(shown).toMatchObject({ code: 0, stdout: expect.stringContaining(`Daemon ${pid}`) });
    expect(shown.stderr).toMatch(/^! Which daemon is this project's is not known: [^\n]+\n$/);
    expect(await home.terminal("daemon", "stop", "--all")).toMatchObject({ code: 0 });
    expect((await client.request("tools/list")).error?.message).toContain("meanwhile.config.ts");
    writeFileSync(config, "export default {};");
    expect(JSON.stringify(await client.request("tools/list"))).toContain("say_back");
  });

  test("of the home that breaks before the daemon dies: a call made after that is told that it was not run, why no daemon starts, and how to mend it", async () => {
    const home = new DaemonHome();
    const client = await home.connect();
    const config = path.join(home.home, "config.json");
    writeFileSync(config, "{ broken");
    kill(home.daemon().pid);
    await waitFor(() => client.front.stderr().includes("✗"));
    const { error } = await client.request("tools/call", { name: "say_back", arguments: {} });
    expect(error?.message).toMatch(
      /^The call was not run: no daemon could be reached\. Cannot read \S+config\.json at line 1, .+\. Mend that, then call again\.$/,
    );
    writeFileSync(config, "{}");
    expect((await client.call("say_back")).isError).not.toBe(true);
  });

  test("that never finishes loading does not keep a front that is told to end, nor stays behind", async () => {
    const home = new DaemonHome();
    const mark = path.join(home.cwd, "mark");
    writeFileSync(
      path.join(home.cwd, "meanwhile.config.ts"),
      `import { writeFileSync } from "node:fs"; writeFileSync(${JSON.stringify(mark)}, String(process.pid)); setInterval(() => {}, 1000); await new Promise(() => {});`,
    );
    const front = home.start({ words: [] });
    const loader = await waitFor(() => Number(readOr(mark)) || undefined);
    front.child.kill("SIGTERM");
    expect(await front.exited).toBe(0);
    await waitFor(() => !isRunning(loader));
    expect(daemonProcesses(home.home)).toEqual([]);
  });
});

function readOr(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
