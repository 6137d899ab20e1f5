/** What becomes of a question whose task must not run twice when its daemon is told to stop. */
import { describe, expect, test } from "vitest";
import { askDaemon } from "../../src/daemon/reach/ask-daemon.ts";
import { homeAt } from "../../src/paths.ts";
import { openAskingProject } from "../helpers/asking-task.ts";
import { runCli, startCli } from "../helpers/cli.ts";
import { DaemonHomeHere } from "../helpers/daemon-here.ts";
import { writeFiles } from "../helpers/home.ts";
import { waitFor } from "../helpers/wait-for.ts";

const words = ["--no-bundled"];

/** A daemon whose unsafe task waits for an answer. */
async function openAsking() {
  const { place } = openAskingProject();
  writeFiles(place.cwd, { "meanwhile.config.json": JSON.stringify({ graceSeconds: 0 }) });
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
    expect(kept.stderr()).toContain(`    ${taskId.slice(0, 8)}  ask_name  «What is your name?»\n`);
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
});

describe("a daemon that is restarted", () => {
  test("takes no new work, keeps its question for the next daemon, and ends when it is answered", async () => {
    const { place, home, daemons, daemon, taskId, cli, show } = await openAsking();
    const { launch } = daemons.place();
    const restarted = await runCli([...words, "daemon", "restart"], { ...place, launch });
    const next = daemons.daemons.find(({ pid }) => pid !== daemon.pid);
    expect(restarted).toMatchObject({
      code: 0,
      stderr:
        `✓ Daemon ${next?.pid} serves ${place.cwd}/commands\n` +
        `  Daemon ${daemon.pid} takes no new work, and ends when it has the answer to:\n` +
        `    ${taskId.slice(0, 8)}  ask_name  «What is your name?»\n`,
    });
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
});
