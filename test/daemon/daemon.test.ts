import { existsSync } from "node:fs";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { callerKey } from "../../src/command/caller.ts";
import { defineCommand } from "../../src/command/command.ts";
import { readRecord } from "../../src/daemon/record.ts";
import { homeAt } from "../../src/paths.ts";
import { localUserIn } from "../../src/runtime/home-id.ts";
import { openStore } from "../../src/store/open.ts";
import { dataOf } from "../helpers/daemon.ts";
import { DaemonHomeHere } from "../helpers/daemon-here.ts";
import { gate, kindOf, taskIdOf } from "../helpers/project.ts";
import { openServer } from "../helpers/server.ts";

/** The daemon as a handle in the test's process: `Daemon.start`, `stop` and `kill`. */

const echoCommand = defineCommand({ summary: "Say echo", effects: "read", run: () => ({ said: "echo" }) });

const listeners = () =>
  ["SIGINT", "SIGTERM", "SIGHUP", "exit", "uncaughtException", "unhandledRejection"].map((event) =>
    process.listenerCount(event),
  );
const ofProcess = () => ({
  cwd: process.cwd(),
  env: { ...process.env },
  exit: process.exit,
  write: [process.stdout.write, process.stderr.write],
  listeners: listeners(),
});

test("serves a call, stops, and leaves nothing of its process changed", async () => {
  const before = ofProcess();
  const home = new DaemonHomeHere();
  const client = await home.connect();
  expect(dataOf(await client.call("say_back", { text: "hello" }))).toMatchObject({ text: "hello" });
  const { daemon } = home;
  await daemon.stop();
  expect(home.daemons).toEqual([]);
  expect(existsSync(daemon.socket)).toBe(false);
  expect(readRecord(homeAt({ MEANWHILE_HOME: home.home }), daemon.settings.daemon.key)).toBeUndefined();
  await client.close();
  expect(ofProcess()).toEqual(before);
});

test("a daemon without a project leaves the working folder of its process as it was", async () => {
  const home = new DaemonHomeHere();
  const cwd = process.cwd();
  await home.connect({ words: [] });
  expect(home.daemon.socket).toBe(path.join(home.home, "mcp.sock"));
  expect(process.cwd()).toBe(cwd);
});

test("a second daemon of the same key is refused", async () => {
  const home = new DaemonHomeHere();
  expect((await home.start()).said).toBe("ready");
  expect((await home.start()).said).toBe("taken");
  expect(home.daemons).toHaveLength(1);
});

test("kill leaves socket and record, and the next daemon of the same key takes their place", async () => {
  const home = new DaemonHomeHere();
  const { daemon: killed } = await home.start();
  if (killed === undefined) throw new Error("The daemon did not start.");
  await killed.kill();
  expect(existsSync(killed.socket)).toBe(true);
  const record = () => readRecord(homeAt({ MEANWHILE_HOME: home.home }), killed.settings.daemon.key);
  expect(record()).toMatchObject({ pid: killed.pid, socket: killed.socket });
  expect((await home.start()).said).toBe("ready");
  expect(record()).toMatchObject({ pid: home.daemon.pid, socket: killed.socket });
});

test("a task of a killed daemon keeps its lease; the next daemon runs the task again, and nothing of the first run is written", async () => {
  const home = new DaemonHomeHere();
  const client = await home.connect();
  const { input, open, seen, starts, lines } = gate();
  const task = await client.call("job_safe", input);
  await seen("started");
  const killed = home.daemon;
  await killed.kill();
  // The stdio proxy has started the next daemon.
  await seen("started", 2);
  expect(home.daemon.pid).not.toBe(killed.pid);
  open();
  await seen("ended");
  const result = await client.call("task_result", { job_id: taskIdOf(task) });
  expect(dataOf(result)).toMatchObject({ passed: input.file });
  expect(starts()).toBe(2);
  expect(lines().filter((line) => line === "ended")).toHaveLength(1);
  const store = await openStore(killed.settings.store);
  onTestFinished(() => store.close());
  expect(await store.get({ caller: callerKey(localUserIn(killed.settings)) }, taskIdOf(task))).toMatchObject({
    attempts: 1,
    crashes: 1,
  });
});

test("a call in flight when its daemon is killed is answered with an error", async () => {
  const home = new DaemonHomeHere();
  const client = await home.connect();
  const { input, seen } = gate();
  const { answer } = client.startCall("work_gated", input);
  await seen("started");
  await home.daemon.kill();
  expect((await answer).error?.message).toContain("its outcome is not known");
  expect(kindOf(await client.call("say_back"))).toBe("answer");
});

test("openServer opens a server behind a daemon", async () => {
  const server = await openServer({ in: "daemon", commands: { echo: echoCommand } });
  const client = await server.client("plain");
  expect(dataOf(await client.call("echo"))).toEqual({ said: "echo" });
  expect(server.daemons.daemon.socket).toContain(server.home);
  await server.close();
  expect(server.daemons.daemons).toEqual([]);
});
