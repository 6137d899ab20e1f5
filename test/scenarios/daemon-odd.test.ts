import { realpathSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test, vi } from "vitest";
import { DaemonHomeHere } from "../helpers/daemon-here.ts";
import { cleanUp, temporaryFolder, writeFiles } from "../helpers/home.ts";
import { waitFor } from "../helpers/wait-for.ts";
import { resultOf, type WireClient } from "../helpers/wire.ts";

/** What people do to homes, folders and config files without thinking of a daemon. */

const hello =
  'import { defineCommand } from "meanwhile"; export default defineCommand({ summary: "Hello", effects: "read", run: () => ({ hello: true }) });';

const namesOf = async (client: WireClient) =>
  (resultOf(await client.request("tools/list")).tools as { name: string }[]).map(({ name }) => name);

test.for(["2025-11-25", "2026-07-28"])(
  "the first command that `meanwhile new` makes in an empty folder reaches the client that is connected there (%s)",
  async (revision) => {
    const home = new DaemonHomeHere();
    rmSync(path.join(home.cwd, "a file"));
    const client = await home.connect({ revision, words: [] });
    const before = await namesOf(client);
    expect(before).toContain("config");
    expect(before).not.toContain("hello_world");
    expect(await home.run(["new", "hello/world"])).toMatchObject({ code: 0 });
    await waitFor(async () => (await namesOf(client)).includes("hello_world"));
    expect((await client.call("hello_world", { name: "Ada" })).structuredContent).toMatchObject({
      data: { greeting: "Hello, Ada!" },
    });
    writeFiles(home.cwd, { "commands/hello/all.ts": hello });
    await waitFor(async () => (await namesOf(client)).includes("hello_all"));
  },
);

test("a project that `meanwhile init` makes reaches the client that is connected there", async () => {
  const home = new DaemonHomeHere();
  const client = await home.connect({ words: [] });
  expect(await namesOf(client)).toContain("config");
  expect(await home.run(["init", "--name", "acme"])).toMatchObject({ code: 0 });
  await waitFor(async () => (await namesOf(client)).includes("report_build"));
  expect(await namesOf(client)).not.toContain("config");
});

test("a session works where its host has started it; another folder says whose commands are served", async () => {
  const mine = writeFiles(temporaryFolder(), { "work/notes/a.md": "a", "served/notes/a.md": "b" });
  const home = new DaemonHomeHere({ cwd: path.join(mine, "served") });
  const client = await home.connect({ words: [], startedIn: path.join(mine, "work") });
  const checked = (await client.call("monitor_check", { path: "notes/a.md" })).structuredContent;
  expect(checked).toMatchObject({ success: true, data: { path: path.join(realpathSync(mine), "work/notes/a.md") } });
});

test("the one daemon of the bundled commands works in the folder of each session", async () => {
  const home = new DaemonHomeHere();
  const mine = writeFiles(temporaryFolder(), { "one/notes/a.md": "a", "two/notes/a.md": "b" });
  vi.stubEnv("HOME", mine);
  cleanUp(() => vi.unstubAllEnvs());
  for (const folder of ["one", "two"]) {
    const client = await home.connect({ words: [], cwd: path.join(mine, folder) });
    const check = async (given: string) => (await client.call("monitor_check", { path: given })).structuredContent;
    for (const given of ["notes/a.md", path.join(mine, folder, "notes/a.md")])
      expect(await check(given)).toMatchObject({
        success: true,
        data: { path: path.join(mine, folder, "notes/a.md") },
      });
    expect(await check(`~/${folder}/notes/a.md`)).toMatchObject({ success: true });
  }
  expect(home.daemons).toHaveLength(1);
});

describe("a home", () => {
  test.for([95, 100, 105, 180])("whose path has %i bytes serves the bundled commands", async (bytes) => {
    const folder = temporaryFolder();
    const long = path.join(folder, "x".repeat(Math.max(1, bytes - Buffer.byteLength(folder) - 1)));
    const home = new DaemonHomeHere({ home: long });
    const client = await home.connect({ words: [] });
    expect((await client.call("config_path")).structuredContent).toMatchObject({ data: { home: long } });
    await home.daemon.stop({ isNow: true });
  });

  test("that is a file is told of, and is not a home without daemons", async () => {
    const home = new DaemonHomeHere();
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

describe("a config file", () => {
  test("in JSON that breaks while a session goes on neither ends it nor hides the daemons", async () => {
    const home = new DaemonHomeHere({ config: {} });
    const config = path.join(home.cwd, "meanwhile.config.json");
    const client = await home.connect();
    const { pid } = home.daemon;
    writeFileSync(config, "{ broken");
    const shown = await home.terminal("daemon", "status");
    expect(shown).toMatchObject({ code: 0, stdout: expect.stringContaining(`Daemon ${pid}`) });
    expect(await home.terminal("daemon", "stop", "--all")).toMatchObject({ code: 0 });
    expect((await client.request("tools/list")).error?.message).toContain("meanwhile.config.json");
    writeFileSync(config, "{}");
    expect(await namesOf(client)).toContain("say_back");
  });

  test("of the home that breaks before the daemon dies: a call made after that is told that it was not run, why no daemon starts, and how to mend it", async () => {
    const home = new DaemonHomeHere();
    const client = await home.connect();
    const config = path.join(home.home, "config.json");
    writeFileSync(config, "{ broken");
    await home.daemon.kill();
    await waitFor(() => client.proxy.stderr().includes("✗"));
    const { error } = await client.request("tools/call", { name: "say_back", arguments: {} });
    expect(error?.message).toMatch(
      /^The call was not run: no daemon could be reached\. Cannot read \S+config\.json at line 1, .+\. Mend that, then call again\.$/,
    );
    writeFileSync(config, "{}");
    expect((await client.call("say_back")).isError).not.toBe(true);
  });
});
