import { globSync, readFileSync, realpathSync, statSync } from "node:fs";
import path from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { killDaemons, recordsOf } from "../helpers/daemon.ts";
import { cleanUp, temporaryFolder, writeFiles } from "../helpers/home.ts";
import { runMeanwhile, startMeanwhile, waitFor } from "../helpers/meanwhile.ts";
import { overPipes, WireClient } from "../helpers/wire.ts";

const server = path.resolve(import.meta.dirname, "../fixtures/gateway/place.mjs");
const secret = "a-secret-of-the-session";

interface Place {
  readonly cwd: string;
  readonly pid: number;
  readonly env: Readonly<Record<string, string>>;
}

/** A home whose daemons are ended after the test. */
function openHome() {
  const home = temporaryFolder();
  cleanUp(() => killDaemons(home));
  const connect = async (words: readonly string[], { cwd = temporaryFolder(), env = {} } = {}) => {
    const started = startMeanwhile(words, { cwd, env: { MEANWHILE_HOME: home, ...env } });
    const client = new WireClient(overPipes(started.child), { revision: "2025-11-25" });
    onTestFinished(() => client.close());
    await client.begin();
    const ask = async (): Promise<Place> => {
      const answer = await client.call("place");
      return JSON.parse(answer.content?.[0]?.text ?? "") as Place;
    };
    return { ...started, client, ask };
  };
  const type = (...words: string[]) => runMeanwhile(words, { env: { MEANWHILE_HOME: home } });
  return { home, connect, type };
}

const readAll = (home: string) =>
  globSync(`${home}/**`)
    .filter((file) => statSync(file, { throwIfNoEntry: false })?.isFile() === true)
    .map((file) => readFileSync(file, "latin1"));

describe("1: a wrapped command", () => {
  test("is started with its session's variables and folder, by one daemon for all, and no secret lies in the home", async () => {
    const { home, connect, type } = openHome();
    const words = ["wrap", "--name", "place", "--", process.execPath, server];
    const one = await connect(words, { env: { SESSION_SECRET: secret, ONLY: "one", MEANWHILE_HOST: "cursor" } });
    const two = await connect(words, { env: { ONLY: "two" } });
    const places = await Promise.all([one.ask(), two.ask()]);
    expect(places.map(({ env }) => [env.ONLY, env.SESSION_SECRET])).toEqual([
      ["one", secret],
      ["two", undefined],
    ]);
    expect(new Set(places.map(({ cwd }) => cwd)).size).toBe(2);
    expect(places[0]?.env).toMatchObject({ MEANWHILE_HOME: home });
    expect(Object.keys(places[0]?.env ?? {})).not.toEqual(
      expect.arrayContaining([expect.stringMatching(/^MEANWHILE_(WRAP|DAEMON_KEY|HOST|RUN)$/)]),
    );
    const [daemon, ...others] = recordsOf(home);
    expect(others).toEqual([]);
    expect((await type("daemon", "status")).stdout).toContain("    wraps     place\n");
    const { upstreams } = JSON.parse((await type("upstreams", "--json")).stdout) as { upstreams: object[] };
    expect(upstreams).toMatchObject([{ name: "place", state: "open", connections: 2, tools: 1, daemon: daemon?.pid }]);
    expect((await type("upstreams", "restart", "place")).code).toBe(0);
    expect((await one.ask()).pid).not.toBe(places[0]?.pid);
    // After a crash the next daemon is told the same again; what was on its way to the dead one is not run twice.
    process.kill(daemon?.pid as number, "SIGKILL");
    const again = await waitFor(() => one.ask().catch(() => undefined));
    expect(again.env).toMatchObject({ ONLY: "one", SESSION_SECRET: secret });
    expect(recordsOf(home)).toHaveLength(1);
    // What it prints itself is its own; of us it is nowhere.
    const left = readAll(home).filter((text) => text.includes(secret) && !text.includes(`started with ${secret}`));
    expect(left).toEqual([]);
  });

  test("has secrets by variables that make a daemon of their own, and its log does not show them", async () => {
    const { home, connect, type } = openHome();
    const folder = writeFiles(temporaryFolder(), {
      "mcp.json": JSON.stringify({
        mcpServers: {
          place: {
            command: process.execPath,
            args: [server],
            env: { SESSION_SECRET: "${TOKEN}", CLEAR: "in-clear-here" },
          },
          off: { command: "x", disabled: true },
        },
      }),
    });
    const words = ["wrap", "--from", "mcp.json"];
    const one = await connect(words, { cwd: folder, env: { TOKEN: secret } });
    const place = await one.ask();
    expect(place).toMatchObject({ cwd: realpathSync(folder), env: { SESSION_SECRET: secret, CLEAR: "in-clear-here" } });
    expect(one.stderr()).toContain("! off of mcp.json is left out: it is disabled there\n");
    await connect(words, { cwd: folder, env: { TOKEN: "another-secret" } });
    expect(recordsOf(home)).toHaveLength(2);
    const logs = await waitFor(async () => {
      const { stdout } = await type("upstreams", "logs", "place");
      return stdout.includes("started with") && stdout;
    });
    expect(logs).toContain("started with [secret]\n");
    expect(readAll(home).filter((text) => text.includes(secret) || text.includes("in-clear-here"))).toEqual([]);
  });

  test("20: that refers to a variable which is not set is refused at the start, wherever it is served", async () => {
    const words = ["wrap", "--url", "http://127.0.0.1:1/mcp", "--header", "Authorization: Bearer ${NOT_SET_AT_ALL}"];
    for (const more of [[], ["--in-process"], ["--http", "--port", "0"]]) {
      const { code, stderr, stdout } = await runMeanwhile([...words, ...more]);
      expect({ code, stdout, stderr }).toEqual({
        code: 2,
        stdout: "",
        stderr:
          "✗ The upstream 127-0-0-1, `headers.Authorization`: the variable NOT_SET_AT_ALL is not set; set it where this is started, or write ${NOT_SET_AT_ALL:-default}.\n",
      });
    }
  });
});

test("who types a server's words where ours stand is told where they belong", async () => {
  for (const [words, hint] of [
    [["npx", "-y", "x"], "  A server's own words stand behind --: meanwhile wrap -- npx -y a-server"],
    [["https://a.b/mcp"], "  An address stands behind --url: meanwhile wrap --url https://a.b/mcp"],
    [["--url"], "  See: meanwhile wrap --help"],
  ] as const) {
    const { code, stderr } = await runMeanwhile(["wrap", ...words]);
    expect([code, stderr.split("\n")[1]]).toEqual([2, hint]);
  }
});

test("an upstream of a config is typed as a command is: run, explained, completed, and as a task", async () => {
  const home = temporaryFolder();
  const here = { command: process.execPath, args: [server], env: { SESSION_SECRET: "${TOKEN:-none-at-all}" } };
  const upstreams = { here, broken: { command: "no-such-program-here" } };
  const cwd = writeFiles(temporaryFolder(), {
    "meanwhile.config.json": JSON.stringify({ bundled: false, upstreams }),
  });
  const type = (...words: string[]) => runMeanwhile(words, { cwd, env: { MEANWHILE_HOME: home, TOKEN: secret } });
  // Nothing is known of it before it was asked, and help does not ask it.
  expect(await type("here", "place", "--help")).toMatchObject({ code: 2, stdout: "" });
  const run = await type("here", "place", "--quiet");
  expect(JSON.parse(run.stdout)).toMatchObject({ cwd: realpathSync(cwd), env: { SESSION_SECRET: secret } });
  expect((await type("here", "place", "--help")).stdout).toContain("Usage: meanwhile here place");
  expect((await type("--help")).stdout).toMatch(/The upstream here\n {2}here +place\n/);
  const offered = await type("_complete", "--shell", "fish", "--", "here", "p");
  expect(offered.stdout).toContain("place");
  expect((await type("_complete", "--shell", "fish", "--", "call", ".", "")).stdout).toContain("here_place");
  // Before there is a task, whose result is what the tool itself says.
  expect(readAll(home).filter((text) => text.includes(secret))).toEqual([]);
  expect((await type("here", "place", "--async", "--quiet")).stdout).toContain(realpathSync(cwd));
  expect(await type("broken", "x")).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^✗ The upstream broken cannot be used\. .*no-such-program-here/),
  });
  expect(await type("broken")).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/^✗ The upstream broken has not said yet what it lists; `meanwhile tools` asks it/),
  });
  const tools = await type("tools");
  expect(tools.code).toBe(1);
  expect(tools.stdout).toMatch(/The upstream here\nhere_place +meanwhile here place/);
  expect(tools.stderr.match(/The upstream broken cannot be used/g)).toHaveLength(1);
});
