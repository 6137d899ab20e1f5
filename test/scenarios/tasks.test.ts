import { readFileSync, statSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { killWorkers } from "../helpers/daemon.ts";
import { cleanUp, temporaryFolder, writeFiles } from "../helpers/home.ts";
import { runMeanwhile, startMeanwhile, waitFor } from "../helpers/meanwhile.ts";

const command = (body: string, more = "") => `import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { defineCommand } from "meanwhile";
import { z } from "zod";
export default defineCommand({ summary: "x", ${more} ${body} });`;

const commands = {
  "commands/work/count.mjs": command(
    `input: z.object({ to: z.number().default(3) }), output: z.object({ counted: z.number() }), summarize: ({ counted }) => "Counted to " + counted,
     async run({ to }, task) {
       appendFileSync("runs", task.attempt + "\\n");
       task.announce("Counting");
       for (let done = 1; done <= to; done++) { await sleep(done === 1 ? 500 : 50, undefined, { signal: task.signal }); task.progress({ done, total: to, message: "At " + done }); }
       return { counted: to };
     }`,
    "idempotent: true,",
  ),
  "commands/work/ask.mjs": command(
    `run: async (_input, task) => await task.ask("Publish it?", z.object({ publish: z.boolean(), note: z.string().optional() }))`,
  ),
  "commands/work/fail.mjs": command(`run() { throw new Error("the disk is full"); }`),
  "commands/work/wipe.mjs": command(`effects: "destroy", run: () => ({ wiped: true })`),
  "commands/work/endless.mjs": command(
    `run: (_input, task) => new Promise((_, reject) => task.signal.addEventListener("abort", () => { appendFileSync("runs", "stopped\\n"); reject(new Error("stopped")); }))`,
  ),
};

function project() {
  const cwd = writeFiles(temporaryFolder(), commands);
  const env = { MEANWHILE_HOME: path.join(cwd, "home") };
  cleanUp(() => killWorkers(env.MEANWHILE_HOME));
  const meanwhile = (...words: string[]) => runMeanwhile(["--no-bundled", ...words], { cwd, env });
  return { cwd, env, meanwhile };
}

describe("a command as a task", () => {
  test("--async follows it to its end, and prints what the command would have printed", async () => {
    const { meanwhile, cwd } = project();
    const { code, stdout, stderr } = await meanwhile("work", "count", "--async");
    expect({ code, stdout }).toEqual({ code: 0, stdout: "counted: 3\n" });
    expect(stderr).toMatch(/^ {2}Task [0-9a-f-]{36}\n› Counting\n[\s\S]*100% {2}At 3\n✓ Counted to 3\n$/);
    expect(statSync(path.join(cwd, "home/tasks.db")).mode & 0o777).toBe(0o600);
    expect(await meanwhile("work", "fail", "--async", "--quiet")).toMatchObject({
      code: 1,
      stdout: "",
      stderr: "✗ the disk is full\n  at commands/work/fail.mjs:5:61\n",
    });
  });

  test("--detach prints the id and leaves; the result is there for whoever asks later", async () => {
    const { meanwhile } = project();
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
    expect(await meanwhile("stats")).toMatchObject({ stdout: expect.stringMatching(/work_count {2}1 {5}/) });
    expect(await meanwhile("tasks", "prune")).toMatchObject({ stderr: "✓ Forgot 1 ended task\n" });
    expect(await meanwhile("tasks", "list")).toMatchObject({ stdout: "No tasks.\n" });
  });

  test("after kill -9 of its process it is found and finished by whoever looks", async () => {
    const { meanwhile, cwd } = project();
    const id = (await meanwhile("work", "count", "--to", "160", "--detach", "--quiet")).stdout.trim();
    const worker = await findWorker(cwd);
    process.kill(worker, "SIGKILL");
    const { code, stdout } = await meanwhile("tasks", "watch", id);
    expect({ code, stdout }).toEqual({ code: 0, stdout: "counted: 160\n" });
    expect(readFileSync(path.join(cwd, "runs"), "utf8")).toBe("1\n2\n");
    expect((await meanwhile("tasks", "show", id)).stdout).toContain("crashes: 1");
  });

  test("an equal call joins the live one; --new starts another", async () => {
    const { meanwhile } = project();
    const first = (await meanwhile("work", "count", "--to", "2000", "--detach", "--quiet")).stdout;
    const second = await meanwhile("work", "count", "--to", "2000", "--detach");
    expect(second.stdout).toBe(first);
    expect(second.stderr).toMatch(/^! Joined the run started .* ago; --new starts another\.\n/);
    expect((await meanwhile("work", "count", "--to", "2000", "--detach", "--quiet", "--new")).stdout).not.toBe(first);
  });

  test("a question waits for its answer, from any terminal", async () => {
    const { meanwhile, cwd } = project();
    const id = (await meanwhile("work", "ask", "--detach", "--quiet")).stdout.trim();
    await waitForQuestion(cwd);
    expect((await meanwhile("tasks", "show", id)).stdout).toMatch(/status: input_required[\s\S]*message: Publish it\?/);
    expect(await meanwhile("tasks", "answer", id)).toMatchObject({
      code: 2,
      stderr: "✗ It asks «Publish it?»: give publish=… note=…\n",
    });
    expect(await meanwhile("tasks", "answer", id, "publsh=true")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("it asks for publish, note"),
    });
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

  test("cancel reaches the command within a second, and is final", async () => {
    const { meanwhile, cwd } = project();
    const id = (await meanwhile("work", "endless", "--detach", "--quiet")).stdout.trim();
    await findWorker(cwd);
    expect(await meanwhile("tasks", "cancel", id)).toMatchObject({ code: 0, stderr: "✓ Cancelled work_endless\n" });
    await waitFor(() => readFileSync(path.join(cwd, "runs"), { encoding: "utf8", flag: "a+" }).includes("stopped"));
    expect(await meanwhile("tasks", "cancel", id)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("It has ended already (cancelled)"),
    });
    expect(await meanwhile("tasks", "result", id)).toMatchObject({
      code: 130,
      stderr: "✗ Cancelled in the terminal.\n",
    });
  });

  test("Ctrl-C while following cancels where nobody can be asked", async () => {
    const { cwd, env, meanwhile } = project();
    const run = startMeanwhile(["--no-bundled", "work", "endless", "--async"], { cwd, env });
    await waitFor(() => /Task [0-9a-f-]{36}/.test(run.stderr()));
    await findWorker(cwd);
    run.child.kill("SIGINT");
    expect(await run.exited).toBe(130);
    expect((await meanwhile("tasks", "list")).stdout).toContain("cancelled");
  });

  test("what destroys asks first as a task too; --yes goes ahead", async () => {
    const { meanwhile } = project();
    expect(await meanwhile("work", "wipe", "--async", "--yes", "--quiet")).toMatchObject({
      code: 0,
      stdout: "wiped: true\n",
    });
    const id = (await meanwhile("work", "wipe", "--detach", "--yes", "--quiet")).stdout.trim();
    expect(await meanwhile("tasks", "result", id, "--wait")).toMatchObject({ code: 0, stdout: "wiped: true\n" });
  });
});

test("a terminal that is closed leaves its task alone; the work goes on", async () => {
  const { cwd, env, meanwhile } = project();
  const run = startMeanwhile(["--no-bundled", "work", "count", "--to", "40", "--async"], { cwd, env });
  await waitFor(() => /Task [0-9a-f-]{36}/.test(run.stderr()));
  await findWorker(cwd);
  run.child.kill("SIGHUP");
  await run.exited;
  const id = /Task ([0-9a-f-]{36})/.exec(run.stderr())?.[1] as string;
  expect(await meanwhile("tasks", "result", id, "--wait")).toMatchObject({ code: 0, stdout: "counted: 40\n" });
  expect(readFileSync(path.join(cwd, "runs"), "utf8")).toBe("1\n");
});

describe("bad input", () => {
  test("wrong arguments make no task: the field, exit 2, as without --async", async () => {
    const { meanwhile } = project();
    const plain = await meanwhile("work", "count", "--to", "many");
    expect(plain).toMatchObject({ code: 2, stdout: "" });
    expect(await meanwhile("work", "count", "--to", "many", "--async")).toMatchObject({
      code: 2,
      stdout: "",
      stderr: expect.stringContaining("Invalid argument for work count: `to`"),
    });
    expect((await meanwhile("tasks", "list")).stdout).toBe("No tasks.\n");
  });

  test("an answer that does not fit is refused by field, and the question stays open", async () => {
    const { meanwhile, cwd } = project();
    const id = (await meanwhile("work", "ask", "--detach", "--quiet")).stdout.trim();
    await waitForQuestion(cwd);
    expect(await meanwhile("tasks", "answer", id, "publish=maybe")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("The answer does not fit: `publish`"),
    });
    expect((await meanwhile("tasks", "show", id)).stdout).toContain("input_required");
    expect(await meanwhile("tasks", "answer", id, "--decline")).toMatchObject({ code: 0 });
    expect(await meanwhile("tasks", "result", id, "--wait")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("was declined"),
    });
  });

  test.each([["0"], ["-1"], ["1.5"], ["1e400"], ["five"], ["9007199254740992"]])(
    "--task-ttl %s: named, exit 2, no task made",
    async (ttl) => {
      const { meanwhile } = project();
      expect(await meanwhile("work", "count", "--detach", `--task-ttl=${ttl}`)).toMatchObject({
        code: 2,
        stdout: "",
        stderr: expect.stringContaining("must be a positive whole number of milliseconds"),
      });
      expect((await meanwhile("tasks", "list")).stdout).toBe("No tasks.\n");
    },
  );

  test("unknown ids, cursors, statuses and words: one sentence, exit 2", async () => {
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

  test("a database that is none: refused with the file and the cure, exit 70, unchanged", async () => {
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

/** The process that runs a project's task, once it has begun. */
async function findWorker(cwd: string): Promise<number> {
  const where = "worker is not null and progress is not null or command = 'work_endless' and worker is not null";
  const { worker } = await findTask(cwd, where);
  return Number(worker.split("|")[2]);
}

async function waitForQuestion(cwd: string): Promise<void> {
  await findTask(cwd, "status = 'input_required'");
}

/** Looks into the store itself until there is such a task: a terminal is a process, too much for looking often. */
async function findTask(cwd: string, where: string): Promise<{ worker: string }> {
  const Database = (await import("better-sqlite3")).default;
  const db = new Database(path.join(cwd, "home/tasks.db"), { readonly: true });
  try {
    return await waitFor(() => db.prepare<[], { worker: string }>(`select worker from tasks where ${where}`).get());
  } finally {
    db.close();
  }
}
