import { describe, expect, test } from "vitest";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";
import { runMeanwhile } from "../helpers/meanwhile.ts";
import { keys, openScreen } from "../helpers/screen.ts";

/** What a person at a terminal sees of things that go wrong, and of things that are wide. */

describe("a no looks like a no", { timeout: 120_000 }, () => {
  test("a vault with a broken link: ✗, exit code 1, and the links as data", async () => {
    const cwd = writeFiles(temporaryFolder(), { "notes/a.md": "See [[nowhere]].\n" });
    const env = { MEANWHILE_HOME: `${cwd}/home` };
    await runMeanwhile(["vault", "index", "notes"], { cwd, env });
    const broken = await runMeanwhile(["vault", "check", "--json"], { cwd, env });
    expect(broken.code).toBe(1);
    expect(broken.stderr).toContain("✗ 1 of 1 links are broken\n");
    expect(JSON.parse(broken.stdout)).toMatchObject({ is_valid: false, issues: [{ note: "a.md", link: "nowhere" }] });
    const asTask = await runMeanwhile(["vault", "check", "--json", "--async"], { cwd, env });
    expect([asTask.code, asTask.stderr]).toEqual([1, expect.stringContaining("✗ 1 of 1 links are broken\n")]);
    writeFiles(cwd, { "notes/nowhere.md": "here" });
    await runMeanwhile(["vault", "index", "notes"], { cwd, env });
    expect((await runMeanwhile(["vault", "check"], { cwd, env })).code).toBe(0);
  });

  test("a path that is not there", async () => {
    const { code, stderr, stdout } = await runMeanwhile(["ingest", "sources", "nots", "--json"]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/✗ Nothing was ingested: .*nots: it is not there, and nothing was ingested from it\n/);
    expect(JSON.parse(stdout)).toMatchObject({ files_ingested: 0, errors_total: 1 });
  });
});

const asking = `import { setTimeout as sleep } from "node:timers/promises";
import { defineCommand } from "meanwhile";
import { z } from "zod";

export default defineCommand({
  summary: "Work for long, or ask first",
  input: z.object({ asks: z.boolean().default(false) }),
  async run({ asks }, task) {
    if (asks) await task.ask("What is your name?", z.object({ name: z.string() }));
    task.progress({ done: 1, total: 4, message: "Page 1 of 4" });
    await sleep(600_000, undefined, { signal: task.signal });
  },
});
`;

test("a task that is only watched goes on: Ctrl-C asks nothing, leaves, and leaves its question open", { timeout: 120_000 }, async () => {
  const cwd = writeFiles(temporaryFolder(), { "commands/long/work.ts": asking });
  const env = { MEANWHILE_HOME: `${cwd}/home` };
  const meanwhile = async (...words: string[]) => (await runMeanwhile(words, { cwd, env })).stdout.trim();
  const works = await meanwhile("long", "work", "--detach", "--quiet");
  const asks = await meanwhile("long", "work", "--asks", "--detach", "--quiet");
  try {
    for (const [task, sign] of [
      [works, /Page 1 of 4/],
      [asks, /What is your name\?/],
    ] as const) {
      const { sees, press, exited, drawn } = openScreen(["tasks", "watch", task], { cwd, env });
      await sees(sign);
      press(keys.ctrlC);
      expect(await exited).toBe(0);
      expect(drawn()).toContain(`It goes on without you: meanwhile tasks watch ${task}`);
      expect(drawn()).not.toContain("Leave how?");
    }
    const { tasks } = JSON.parse(await meanwhile("tasks", "list", "--json")) as { tasks: { taskId: string; status: string }[] };
    expect(Object.fromEntries(tasks.map(({ taskId, status }) => [taskId, status]))).toEqual({ [works]: "working", [asks]: "input_required" });
  } finally {
    await Promise.all([works, asks].map((task) => meanwhile("tasks", "cancel", task)));
  }
});
