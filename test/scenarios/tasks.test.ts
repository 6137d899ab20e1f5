import { existsSync, readFileSync, statSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { runCli, startCli } from "../helpers/cli.ts";
import { holdTimer } from "../helpers/hold-timer.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";
import { waitFor } from "../helpers/wait-for.ts";

const command = (body: string, more = "") => `import { appendFileSync, existsSync } from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { defineCommand } from "meanwhile";
import { z } from "zod";
const project = path.resolve(import.meta.dirname, "../..");
const note = (text) => appendFileSync(path.join(project, "notes"), text + "\\n");
const isReleased = async (signal) => {
  while (!existsSync(path.join(project, "go"))) await sleep(5, undefined, { signal });
};
export default defineCommand({ summary: "x", ${more} ${body} });`;

/** `count` and `hold` run until the file "go" exists. */
const commands = {
  "commands/work/count.mjs": command(
    `input: z.object({ to: z.number().default(3) }), output: z.object({ counted: z.number() }), summarize: ({ counted }) => "Counted to " + counted,
     async run({ to }, task) {
       task.announce("Counting");
       await isReleased(task.signal);
       for (let done = 1; done <= to; done++) task.progress({ done, total: to, message: "At " + done });
       return { counted: to };
     }`,
    "idempotent: true,",
  ),
  "commands/work/hold.mjs": command(
    `async run(_input, task) {
       note("started");
       task.signal.addEventListener("abort", () => note("stopped"));
       await isReleased(task.signal);
       return { held: true };
     }`,
  ),
  "commands/work/ask.mjs": command(
    `run: async (_input, task) => await task.ask("Publish it?", z.object({ publish: z.boolean(), note: z.string().optional() }))`,
  ),
  "commands/work/fail.mjs": command(`run() { throw new Error("the disk is full"); }`),
  "commands/work/wipe.mjs": command(`effects: "destroy", run: () => ({ wiped: true })`),
};

function project() {
  const cwd = writeFiles(temporaryFolder(), commands);
  const env = { MEANWHILE_HOME: path.join(cwd, "home") };
  const meanwhile = (...words: string[]) => runCli(["--no-bundled", ...words], { cwd, env });
  const start = (...words: string[]) => startCli(["--no-bundled", ...words], { cwd, env });
  const notes = () => {
    const file = path.join(cwd, "notes");
    return existsSync(file) ? readFileSync(file, "utf8").split("\n").slice(0, -1) : [];
  };
  /** Resolves when `hold` has written this. */
  const noted = async (text: string) => void (await waitFor(() => notes().includes(text)));
  const finish = () => void writeFiles(cwd, { go: "" });
  const isAsked = (id: string) =>
    waitFor(async () => (await meanwhile("tasks", "show", id)).stdout.includes("status: input_required"));
  return { cwd, meanwhile, start, notes, noted, finish, isAsked };
}

describe("a command as a task", () => {
  test("--async follows the task to its end, and prints what the command would have printed", async () => {
    const { start, meanwhile, cwd, finish } = project();
    const run = start("work", "count", "--async");
    await run.says(/› Counting/);
    finish();
    expect(await run.exited).toBe(0);
    expect(run.stdout()).toBe("counted: 3\n");
    expect(run.stderr()).toMatch(/^ {2}Task [0-9a-f-]{36}\n› Counting\n[\s\S]*100% {2}At 3\n✓ Counted to 3\n$/);
    expect(statSync(path.join(cwd, "home/tasks.db")).mode & 0o777).toBe(0o600);
    expect(await meanwhile("work", "fail", "--async", "--quiet")).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringMatching(/^✗ the disk is full\n {2}at commands\/work\/fail\.mjs:\d+:\d+\n$/),
    });
  });

  test("--detach prints the ID and ends; `tasks` and `stats` know the task and its result", async () => {
    const { meanwhile, finish } = project();
    finish();
    const { stdout, stderr } = await meanwhile("work", "count", "--detach");
    const id = stdout.trim();
    expect(stderr).toBe(`✓ Runs on without you: meanwhile tasks watch ${id}\n`);
    expect(await meanwhile("tasks", "result", id, "--wait", "--json")).toMatchObject({
      code: 0,
      stdout: '{\n  "counted": 3\n}\n',
    });
    expect(await meanwhile("tasks", "show", id.slice(0, 8))).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/status: completed\nreason: asked for with --detach/),
    });
    expect(await meanwhile("tasks", "list")).toMatchObject({
      stdout: expect.stringMatching(new RegExp(`${id} {2}work_count {2}completed`)),
    });
    // The worker writes durations when it ends, a moment after the result.
    const counted = /work_count {2}1 {5}/;
    await waitFor(async () => counted.test((await meanwhile("stats")).stdout));
    expect(await meanwhile("tasks", "prune")).toMatchObject({ stderr: "✓ Forgot 1 ended task\n" });
    expect(await meanwhile("tasks", "list")).toMatchObject({ stdout: "No tasks.\n" });
  });

  test("an equal call joins the live task; --new starts another", async () => {
    const { meanwhile, noted, finish } = project();
    const first = (await meanwhile("work", "hold", "--detach", "--quiet")).stdout;
    await noted("started");
    const second = await meanwhile("work", "hold", "--detach");
    expect(second.stdout).toBe(first);
    expect(second.stderr).toMatch(/^! Joined the run started .* ago; --new starts another\.\n/);
    const third = (await meanwhile("work", "hold", "--detach", "--quiet", "--new")).stdout;
    expect(third).not.toBe(first);
    finish();
    for (const id of [first, third])
      expect(await meanwhile("tasks", "result", id.trim(), "--wait")).toMatchObject({
        code: 0,
        stdout: "held: true\n",
      });
  });

  test("a question waits for its answer, which another terminal may give", async () => {
    const { meanwhile, isAsked } = project();
    const id = (await meanwhile("work", "ask", "--detach", "--quiet")).stdout.trim();
    await isAsked(id);
    expect((await meanwhile("tasks", "show", id)).stdout).toMatch(/message: Publish it\?/);
    expect(await meanwhile("tasks", "answer", id)).toMatchObject({
      code: 2,
      stderr: "✗ It asks «Publish it?»: give publish=… note=…\n",
    });
    expect(await meanwhile("tasks", "answer", id, "publsh=true")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("it asks for publish, note"),
    });
    expect(await meanwhile("tasks", "answer", id, "publish=maybe")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("The answer does not fit: `publish`"),
    });
    expect((await meanwhile("tasks", "show", id)).stdout).toContain("input_required");
    expect(await meanwhile("tasks", "answer", id, "publish=true", "note=go")).toMatchObject({
      code: 0,
      stderr: "✓ Answered «Publish it?»\n",
    });
    expect(await meanwhile("tasks", "result", id, "--wait")).toMatchObject({
      code: 0,
      stdout: "publish: true\nnote: go\n",
    });
    expect(await meanwhile("tasks", "answer", id, "publish=true")).toMatchObject({
      code: 1,
      stderr: "✗ It asks nothing right now.\n",
    });
  });

  test("--decline declines its question, and the task fails with that", async () => {
    const { meanwhile, isAsked } = project();
    const id = (await meanwhile("work", "ask", "--detach", "--quiet")).stdout.trim();
    await isAsked(id);
    expect(await meanwhile("tasks", "answer", id, "--decline")).toMatchObject({ code: 0 });
    expect(await meanwhile("tasks", "result", id, "--wait")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("was declined"),
    });
  });

  test("`tasks cancel` stops the command, and is final", async () => {
    const { meanwhile, noted } = project();
    // A worker polls the store of other processes once a second.
    const poll = holdTimer(1_000);
    const id = (await meanwhile("work", "hold", "--detach", "--quiet")).stdout.trim();
    await noted("started");
    expect(await meanwhile("tasks", "cancel", id)).toMatchObject({ code: 0, stderr: "✓ Cancelled work_hold\n" });
    poll();
    await noted("stopped");
    expect(await meanwhile("tasks", "cancel", id)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("It has ended already (cancelled)"),
    });
    expect(await meanwhile("tasks", "result", id)).toMatchObject({
      code: 130,
      stderr: "✗ Cancelled in the terminal.\n",
    });
  });

  test("Ctrl-C in --async cancels the task where nobody can be asked", async () => {
    const { start, meanwhile, noted, finish } = project();
    const run = start("work", "hold", "--async");
    await noted("started");
    run.signal("SIGINT");
    expect(await run.exited).toBe(130);
    finish();
    expect((await meanwhile("tasks", "list")).stdout).toContain("cancelled");
  });

  test("SIGHUP ends --async and leaves its task running", async () => {
    const { start, meanwhile, noted, notes, finish } = project();
    const run = start("work", "hold", "--async");
    await noted("started");
    run.signal("SIGHUP");
    await run.exited;
    const id = /Task ([0-9a-f-]{36})/.exec(run.stderr())?.[1] as string;
    expect((await meanwhile("tasks", "show", id)).stdout).toContain("status: working");
    finish();
    expect(await meanwhile("tasks", "result", id, "--wait")).toMatchObject({ code: 0, stdout: "held: true\n" });
    expect(notes()).toEqual(["started"]);
  });

  test("--yes confirms a task of a command that destroys", async () => {
    const { meanwhile } = project();
    expect(await meanwhile("work", "wipe", "--async", "--yes", "--quiet")).toMatchObject({
      code: 0,
      stdout: "wiped: true\n",
    });
    const id = (await meanwhile("work", "wipe", "--detach", "--yes", "--quiet")).stdout.trim();
    expect(await meanwhile("tasks", "result", id, "--wait")).toMatchObject({ code: 0, stdout: "wiped: true\n" });
  });
});

describe("bad input", () => {
  test("wrong arguments and wrong values of --task-ttl are named, exit with 2 and make no task", async () => {
    const { meanwhile } = project();
    for (const how of [[], ["--async"]])
      expect(await meanwhile("work", "count", "--to", "many", ...how)).toMatchObject({
        code: 2,
        stdout: "",
        stderr: expect.stringContaining("Invalid argument for work count: `to`"),
      });
    for (const ttl of ["0", "-1", "1.5", "1e400", "five", "9007199254740992"])
      expect(await meanwhile("work", "count", "--detach", `--task-ttl=${ttl}`), ttl).toMatchObject({
        code: 2,
        stdout: "",
        stderr: expect.stringContaining("must be a positive whole number of milliseconds"),
      });
    expect((await meanwhile("tasks", "list")).stdout).toBe("No tasks.\n");
  });

  test("unknown IDs, cursors, statuses and words give one sentence and exit code 2", async () => {
    const { meanwhile } = project();
    for (const id of ["nothing", "11111111-1111-4111-8111-111111111111", "__proto__"])
      expect(await meanwhile("tasks", "show", id)).toMatchObject({
        code: 2,
        stderr: "✗ There is no such task; it may have expired.\n",
      });
    expect(await meanwhile("tasks", "list", "--cursor", "abc")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("`cursor` is not one of ours"),
    });
    expect(await meanwhile("tasks", "list", "--status", "sleeping")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('"sleeping" is none of queued, working'),
    });
    expect(await meanwhile("tasks", "list", "--limit", "0")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("`limit` must be a whole number from 1 to 100"),
    });
    expect(await meanwhile("tasks", "lst")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("Unknown command `tasks lst`; there are list, show"),
    });
  });

  test("a damaged database is refused with its file and the cure, exits with 70 and is not changed", async () => {
    const { cwd, meanwhile } = project();
    writeFiles(cwd, { "home/tasks.db": "this is not a database, but it is long enough to look like one".repeat(20) });
    const before = readFileSync(path.join(cwd, "home/tasks.db"));
    expect(await meanwhile("tasks", "list")).toMatchObject({
      code: 70,
      stdout: "",
      stderr: expect.stringMatching(/^✗ The task database .*tasks\.db is damaged .* nothing was changed\. [^\n]+\n$/),
    });
    expect(readFileSync(path.join(cwd, "home/tasks.db"))).toEqual(before);
  });
});
