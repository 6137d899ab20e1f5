import { spawnSync } from "node:child_process";
import path from "node:path";
import { expect, test, vi } from "vitest";
import { system } from "../../../src/system/system.ts";
import { failureOf, talk } from "../../gateway/talk.ts";
import { type CommandMode, commandUpstream } from "../../helpers/upstreams.ts";

const start = (mode: CommandMode, more?: Record<string, string>) =>
  talk({ kind: "command", ...commandUpstream(mode, more) });
const shell = (script: string) =>
  talk({ kind: "command", command: "/bin/sh", args: ["-c", script], cwd: "/", env: { PATH: process.env.PATH ?? "" } });
const waiting = { timeout: 50_000 };
const isGone = (pid: number) => vi.waitFor(() => expect(system.isAlive(pid)).toBe(false), waiting);

/** The process ids that a script has printed. */
async function pidsOf(stderr: readonly string[], count: number): Promise<number[]> {
  const pids = () => stderr.join("").trim().split(/\s+/).map(Number);
  await vi.waitFor(() => expect(pids().filter((pid) => pid > 0)).toHaveLength(count), waiting);
  return pids();
}

test.each(["noise", "bom"] as const)("4: what is no message is passed over, and said once: %s", async (mode) => {
  const { begin, call, notices } = await start(mode);
  await begin();
  expect(await call("echo", { text: "one" })).toBe("one");
  expect(await call("ask")).toBe("Hello Ada");
  expect(notices).toEqual(
    mode === "noise"
      ? ["It prints to its standard output what is no message of MCP, and that is passed over: «Starting up…»."]
      : [],
  );
});

test("4: a line of 100 MB closes the link with a sentence, ends the server and takes no memory", async () => {
  const { begin, call, peer, stderr } = await start("long-line");
  await begin();
  const before = process.memoryUsage().rss;
  const error = await failureOf(call("echo", { text: "x" }));
  expect(error).toMatchObject({ message: "The server sent a message larger than 10 MiB.", isUnsent: false });
  const [pid = 0] = await pidsOf(stderr, 1);
  await isGone(pid);
  expect(process.memoryUsage().rss - before).toBeLessThan(100 * 1024 * 1024);
  expect(await failureOf(peer.link.send({ id: 9, method: "ping" }))).toMatchObject({ isUnsent: true });
});

test("4: a flood on stderr neither blocks the server nor is kept", async () => {
  const { begin, call, stderr } = await start("stderr-flood");
  await begin();
  expect(await call("echo", { text: "dry" })).toBe("dry");
  expect(Math.max(...stderr.map((piece) => piece.length))).toBeLessThanOrEqual(64 * 1024);
  await vi.waitFor(() => expect(stderr.join("").length).toBe(2 * 320 * 64 * 1024), waiting);
});

test("how a server ended, and what it said last, is in the error", async () => {
  const { peer } = await start("exits-at-once");
  expect((await peer.closed).message).toMatch(
    /^The server .*node ended with exit code 3; it printed «It has no config\.»\.$/,
  );
  expect(await failureOf(peer.link.send({ id: 1, method: "ping" }))).toMatchObject({ isUnsent: true });

  const inCall = await start("exits-in-call");
  await inCall.begin();
  const error = await failureOf(inCall.call("count"));
  expect(error.message).toMatch(/ended with exit code 7; it printed «It ran out of memory\.»\.$/);
  expect(error.isUnsent).toBe(false);
});

test("one that cannot be started was sent nothing", async () => {
  const address = { kind: "command", command: "no-such-program", args: [], cwd: "/", env: {} } as const;
  expect(await failureOf(talk(address))).toMatchObject({
    message: expect.stringContaining(
      "The server no-such-program cannot be started: there is no such command or working folder; name one that is installed",
    ),
    isUnsent: true,
    isPassing: false,
  });
});

test("1: its environment is what was given, and a mark", async () => {
  const script =
    "console.error(JSON.stringify([Object.keys(process.env).sort(), process.cwd()])); process.stdin.resume()";
  const { stderr } = await talk({
    kind: "command",
    command: process.execPath,
    args: ["-e", script],
    cwd: path.resolve("test"),
    env: { ONLY: "this" },
  });
  await vi.waitFor(() => expect(stderr.join("")).toContain("\n"), waiting);
  expect(JSON.parse(stderr.join(""))).toEqual([["MEANWHILE_UPSTREAM", "ONLY"], path.resolve("test")]);
});

test("1: no shell reads its words, and it leads a group of its own", async () => {
  const script = "console.error(JSON.stringify([process.argv.slice(1), process.pid])); process.stdin.resume()";
  const words = ["$HOME", "a; touch b", "`id`", "two words", "*", ""];
  const address = { command: process.execPath, args: ["-e", script, "--", ...words], cwd: "/", env: {} };
  const { stderr } = await talk({ kind: "command", ...address });
  await vi.waitFor(() => expect(stderr.join("")).toContain("\n"), waiting);
  const [heard, pid] = JSON.parse(stderr.join("")) as [string[], number];
  expect(heard).toEqual(words);
  const group = spawnSync("ps", ["-o", "pgid=", "-p", String(pid)], { encoding: "utf8" }).stdout;
  expect(Number(group)).toBe(pid);
});

test("2: closed, it leaves with all that it has started, also when it left first", async () => {
  const { link, stderr } = await shell("sleep 1000 </dev/null >/dev/null 2>&1 & echo $$ $! >&2; cat >/dev/null");
  const pids = await pidsOf(stderr, 2);
  await link.close();
  for (const pid of pids) await isGone(pid);
});

test("2: closed, it is killed with all that it has started when it ignores everything, in whatever group that is", async () => {
  const { link, stderr } = await shell(
    "trap '' TERM; setsid sleep 1000 </dev/null >/dev/null 2>&1 & echo $! >&2; sh -c 'echo $$ >&2; sleep 1000' & while :; do sleep 1; done",
  );
  const pids = await pidsOf(stderr, 2);
  await link.close();
  for (const pid of pids) await isGone(pid);
});

test("one that crashes takes along what it has started", async () => {
  const { peer, stderr } = await shell("sleep 1000 & echo $! >&2; exit 1");
  const [pid = 0] = await pidsOf(stderr, 1);
  expect((await peer.closed).message).toContain("exit code 1");
  await isGone(pid);
});
