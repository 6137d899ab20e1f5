/** What becomes of a question whose task must not run twice when its daemon is told to stop. */
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { createConnection } from "node:net";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { Daemon } from "../../src/daemon/daemon.ts";
import type { Greeting } from "../../src/daemon/greeting.ts";
import { askDaemon } from "../../src/daemon/reach/ask-daemon.ts";
import { drainName, readRecord, writeRecord } from "../../src/daemon/record.ts";
import { homeAt } from "../../src/paths.ts";
import { system } from "../../src/system/system.ts";
import { openAskingProject } from "../helpers/asking-task.ts";
import { type CliResult, runCli, startCli } from "../helpers/cli.ts";
import { DaemonHomeHere } from "../helpers/daemon-here.ts";
import { writeFiles } from "../helpers/home.ts";
import { waitFor } from "../helpers/wait-for.ts";

/** When the time of a question ends, as a terminal prints it. */
const until = "until \\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d UTC";
const words = ["--no-bundled"];

/** A daemon whose unsafe task waits for an answer. */
async function openAsking({ graceSeconds = 0 } = {}) {
  const { place } = openAskingProject();
  writeFiles(place.cwd, { "meanwhile.config.json": JSON.stringify({ graceSeconds }) });
  const home = place.env.MEANWHILE_HOME;
  const daemons = new DaemonHomeHere({ cwd: place.cwd, home });
  const client = await daemons.connect({ words });
  const created = await client.request("tools/call", { name: "ask_name", arguments: {}, task: {} });
  const { taskId } = (created.result as { task: { taskId: string } }).task;
  const { daemon } = daemons;
  const cli = (...typed: string[]) => runCli(typed, place);
  const show = async () => (await cli("tasks", "show", taskId)).stdout;
  await waitFor(async () => (await show()).includes("status: input_required"));
  const stop = [...words, "daemon", "stop"];
  return { place, home: homeAt({ MEANWHILE_HOME: home }), daemons, daemon, taskId, cli, show, stop };
}

describe("daemon stop", () => {
  test("without a terminal exits 1, names the question and --now, and stops nothing", async () => {
    const { daemons, daemon, taskId, cli, show, stop } = await openAsking();
    const refused = await cli(...stop);
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused.stderr).toBe(
      `✗ 1 task waits for an answer and must not run twice: ask_name (${taskId}) asks «What is your name?». ` +
        "Answer with `meanwhile tasks answer <task>`, or add --now: then it ends as interrupted.\n",
    );
    expect(daemons.daemons).toEqual([daemon]);
    expect(await show()).toContain("status: input_required");
    expect(await cli(...stop, "--now")).toMatchObject({
      code: 0,
      stderr: `✓ Daemon ${daemon.pid} has ended; 1 open question ended with it\n`,
    });
    await daemon.ended;
    expect(await show()).toContain("Interrupted");
  });

  test("on a terminal lists the question and asks; keeping the daemon is preselected", async () => {
    const { place, daemons, daemon, taskId, show, stop } = await openAsking();
    const screen = { columns: 80, rows: 24 };
    const kept = startCli(stop, { ...place, screen });
    await kept.says(/Stop the daemon\?[\s\S]*● keep the daemon running[\s\S]*○ stop it: the task ends as interrupted/);
    expect(kept.stderr()).toMatch(
      new RegExp(`    ${taskId.slice(0, 8)}  ask_name  «What is your name\\?», ${until}\\n`),
    );
    kept.stdin.write("\r");
    expect(await kept.exited).toBe(130);
    expect(kept.stderr()).toContain(`Daemon ${daemon.pid} keeps running\n`);
    expect(daemons.daemons).toEqual([daemon]);
    const stopped = startCli(stop, { ...place, screen });
    await stopped.says(/Stop the daemon\?/);
    stopped.stdin.write("\x1b[B\r");
    expect(await stopped.exited).toBe(0);
    await daemon.ended;
    expect(await show()).toContain("Interrupted");
  });

  test("on a narrow terminal lists a question below its task, and breaks no line at the edge", async () => {
    const { place, taskId, stop } = await openAsking();
    const kept = startCli(stop, { ...place, screen: { columns: 40, rows: 24 } });
    await kept.says(/Stop the daemon\?/);
    kept.stdin.write("\r");
    expect(await kept.exited).toBe(130);
    expect(kept.stderr()).toContain(`    ${taskId.slice(0, 8)}  ask_name\n      «What is your name?», until\n      20`);
  });

  test("ends a task with two questions once a person agrees, and lets other work end in its grace period", async () => {
    const { place } = openAskingProject();
    writeFiles(place.cwd, {
      "meanwhile.config.json": JSON.stringify({ graceSeconds: 2 }),
      "commands/ask/two.ts": `
        import { defineCommand } from "meanwhile";
        import { z } from "zod";
        export default defineCommand({
          summary: "Ask twice at once",
          long: true,
          run: (_input, task) =>
            Promise.all(["First?", "Second?"].map((text) => task.ask(text, z.object({ name: z.string() })))),
        });
      `,
      "commands/work/slow.ts": `
        import { defineCommand } from "meanwhile";
        export default defineCommand({ summary: "Wait for the test", long: true, run: () => globalThis.slowWork });
      `,
    });
    const work = Promise.withResolvers<object>();
    Object.assign(globalThis, { slowWork: work.promise });
    const daemons = new DaemonHomeHere({ cwd: place.cwd, home: place.env.MEANWHILE_HOME });
    const client = await daemons.connect({ words });
    const create = async (name: string) => {
      const { result } = await client.request("tools/call", { name, arguments: {}, task: {} });
      return (result as { task: { taskId: string } }).task.taskId;
    };
    const show = async (taskId: string) => (await runCli(["tasks", "show", taskId], place)).stdout;
    const [asking, slow] = [await create("ask_two"), await create("work_slow")];
    await waitFor(async () => (await show(asking)).includes("Second?"));
    await waitFor(async () => (await show(slow)).includes("status: working"));
    const { daemon } = daemons;
    const stopped = startCli([...words, "daemon", "stop"], { ...place, screen: { columns: 80, rows: 24 } });
    await stopped.says(/1 task waits for an answer[\s\S]*Stop the daemon\?/);
    stopped.stdin.write("\x1b[B\r");
    const home = homeAt(place.env);
    await waitFor(
      async () => (await askDaemon(home, daemon.settings.daemon.key, { meanwhile: "status" })) === undefined,
    );
    expect(await show(slow)).toContain("status: working");
    work.resolve({ isDone: true });
    expect(await stopped.exited).toBe(0);
    await daemon.ended;
    expect(await show(slow)).toContain("status: completed");
    expect(await show(asking)).toContain("Interrupted");
  });
});

describe("a daemon that is restarted", () => {
  test("takes no new work, keeps its question for the next daemon, and ends when it is answered", async () => {
    const { place, home, daemons, daemon, taskId, cli, show } = await openAsking();
    const { launch } = daemons.place();
    const restarted = await runCli([...words, "daemon", "restart"], { ...place, launch });
    const next = daemons.daemons.find(({ pid }) => pid !== daemon.pid);
    expect(restarted.code).toBe(0);
    expect(restarted.stderr).toMatch(
      new RegExp(
        `^✓ Daemon ${next?.pid} serves ${place.cwd}/commands\\n` +
          `  Daemon ${daemon.pid} takes no new work, and ends when it has the answer to:\\n` +
          `    ${taskId.slice(0, 8)}  ask_name  «What is your name\\?», ${until}\\n` +
          "  To answer: meanwhile tasks answer <task>\\n$",
      ),
    );
    expect(await askDaemon(home, daemon.settings.daemon.key, { meanwhile: "status" })).toMatchObject({
      pid: next?.pid,
      questions: [],
    });
    expect(await show()).toContain("status: input_required");
    expect(await cli("tasks", "answer", taskId, "name=Ada")).toMatchObject({ code: 0 });
    await daemon.ended;
    expect(await cli("tasks", "result", taskId)).toMatchObject({ code: 0, stdout: "greeting: Hello, Ada\n" });
    expect(daemons.daemons).toEqual([next]);
  });

  test("is listed as draining, with its question, until it has ended, also where no other daemon runs", async () => {
    const { home, daemons, daemon, taskId, cli, next } = await openDraining();
    const rows = [
      /● Daemon \d+ {2}.*, drains {2}this project's\n/,
      /drains +takes no new work, and ends when it has the answer to:\n/,
      new RegExp(` {14}${taskId.slice(0, 8)}  ask_name  «What is your name\\?», ${until}\\n`),
      / {4}answer +meanwhile tasks answer <task>\n/,
    ];
    const listed = await cli(...words, "daemon", "status");
    for (const row of rows) expect(listed.stdout).toMatch(row);
    expect(await statuses(cli)).toEqual([
      { pid: daemon.pid, isDraining: true },
      { pid: next.pid, isDraining: false },
    ]);
    expect(await cli(...words, "daemon", "stop")).toMatchObject({
      code: 0,
      stderr:
        `✓ Daemon ${next.pid} has ended\n` +
        `  Daemon ${daemon.pid} still drains; 1 task waits for an answer. To end it: meanwhile daemon stop ${daemon.pid}\n`,
    });
    expect(await statuses(cli)).toEqual([{ pid: daemon.pid, isDraining: true }]);
    expect(daemons.log()).toContain('"the daemon drains"');
    await cli("tasks", "answer", taskId, "name=Ada");
    await daemon.ended;
    expect(await statuses(cli)).toEqual([]);
    expect(readdirSync(home.runFolder).filter((name) => name.includes(`${daemon.pid}`))).toEqual([]);
  });

  test.each([
    ["its pid", (pid: number) => [`${pid}`, "--now"]],
    ["--all", () => ["--all", "--now"]],
  ])("is ended by `daemon stop` with %s, and by no other way without being asked", async (_name, typed) => {
    const { daemons, daemon, cli, show, next } = await openDraining({ graceSeconds: 60 });
    const refused = await cli("daemon", "stop", `${daemon.pid}`);
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining("1 task waits for an answer") });
    expect(daemons.daemons).toContain(daemon);
    const stopped = await cli("daemon", "stop", ...typed(daemon.pid));
    expect(stopped).toMatchObject({
      code: 0,
      stderr: expect.stringContaining(`✓ Daemon ${daemon.pid} has ended; 1 open question ended with it\n`),
    });
    await daemon.ended;
    expect(await show()).toContain("Interrupted");
    const left = typed(0).includes("--all") ? [] : [next];
    await waitFor(() => daemons.daemons.length === left.length);
    expect(daemons.daemons).toEqual(left);
  });

  test("is not restarted again, and serves no client at its socket", async () => {
    const { home, daemon, cli } = await openDraining();
    const again = await cli("daemon", "restart", `${daemon.pid}`);
    expect(again).toMatchObject({ code: 1, stderr: expect.stringContaining("takes no new work already") });
    const name = drainName(daemon.settings.daemon.key, daemon.pid);
    const hello: Greeting = { meanwhile: "hello", key: daemon.settings.daemon.key };
    expect(await askDaemon(home, name, hello)).toEqual({ meanwhile: "no", why: "leaving" });
    const client = createConnection(readRecord(home, name)?.socket ?? "");
    client.resume().write('{"jsonrpc":"2.0","id":1,"method":"ping"}\n');
    await once(client, "close");
    expect(client.bytesRead).toBe(0);
  });

  test("is asked to end by a signal where it has no socket, and forgotten once its process is another one", async () => {
    const { place, home, cli } = await openAsking();
    const start = system.ownStart() ?? "";
    const record = { pid: process.pid, socket: "", isDraining: true, project: "other" } as const;
    const name = drainName("other", process.pid);
    writeRecord(home, name, { ...record, start });
    expect((await cli("daemon", "status")).stdout).toContain(`Daemon ${process.pid}  drains, and has no socket`);
    let isAlive = true;
    const alive = vi.spyOn(system, "isAlive").mockImplementation((pid) => pid === process.pid && isAlive);
    const asked = vi.spyOn(system, "askToEnd").mockImplementation(() => {
      isAlive = false;
    });
    onTestFinished(() => void vi.restoreAllMocks());
    expect(await runCli(["daemon", "stop", `${process.pid}`], place)).toMatchObject({
      code: 0,
      stderr: `✓ Daemon ${process.pid} has ended\n`,
    });
    expect(asked).toHaveBeenCalledExactlyOnceWith(process.pid);
    alive.mockRestore();
    writeRecord(home, name, { ...record, start: "another start" });
    expect(await statuses(cli)).toHaveLength(1);
    expect(readRecord(home, name)).toBeUndefined();
  });
});

/** The daemons that `daemon status` lists, by pid. */
async function statuses(cli: (...typed: string[]) => Promise<CliResult>) {
  const { stdout } = await cli(...words, "daemon", "status", "--json");
  const { daemons } = JSON.parse(stdout) as { daemons: { pid: number; isDraining: boolean }[] };
  return daemons.map(({ pid, isDraining }) => ({ pid, isDraining })).sort((a, b) => a.pid - b.pid);
}

/** A daemon that waits for an answer after `daemon restart`, and the next one. */
async function openDraining({ graceSeconds = 0 } = {}) {
  const opened = await openAsking({ graceSeconds });
  const { place, daemons, daemon } = opened;
  const { launch } = daemons.place();
  expect(await runCli([...words, "daemon", "restart"], { ...place, launch })).toMatchObject({ code: 0 });
  const next = daemons.daemons.find(({ pid }) => pid !== daemon.pid) as Daemon;
  return { ...opened, next };
}
