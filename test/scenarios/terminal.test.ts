import { describe, expect, test } from "vitest";
import { callerKey } from "../../src/command/caller.ts";
import { defineCommand } from "../../src/command/command.ts";
import { widthOf } from "../../src/screen/width.ts";
import { keys, runCli, startScreen } from "../helpers/cli.ts";
import { shareAmongTests, temporaryFolder, writeFiles } from "../helpers/home.ts";
import { openServer } from "../helpers/server.ts";

/** What a person at a terminal sees of errors, forms and long lines. */

const check = `import { existsSync } from "node:fs";
import path from "node:path";
import { defineCommand } from "meanwhile";
const file = path.join(import.meta.dirname, "../../notes.md");
export default defineCommand({
  summary: "Check the links", effects: "read",
  summarize: ({ broken }) => (broken === 0 ? "All links lead somewhere" : broken + " of 1 links are broken"),
  saysNo: ({ broken }) => broken > 0,
  run: () => ({ broken: existsSync(file) ? 0 : 1 }),
});
`;

describe("a result that says no", () => {
  test("has a ✗, exit code 1 and its data, also as a task", async () => {
    const cwd = writeFiles(temporaryFolder(), { "commands/notes/check.ts": check });
    const env = { MEANWHILE_HOME: `${cwd}/home` };
    for (const how of [[], ["--async"]]) {
      const { code, stdout, stderr } = await runCli(["notes", "check", "--json", ...how], { cwd, env });
      expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining("✗ 1 of 1 links are broken\n") });
      expect(JSON.parse(stdout)).toEqual({ broken: 1 });
    }
    writeFiles(cwd, { "notes.md": "" });
    const { code, stderr } = await runCli(["notes", "check"], { cwd, env });
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringContaining("✓ All links lead somewhere\n") });
  });

  test("of a bundled command: a path that does not exist is named", async () => {
    const { code, stderr, stdout } = await runCli(["ingest", "sources", "nots", "--json"]);
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

test("Ctrl-C in `tasks watch` leaves the task running and its question open, without asking", async () => {
  const cwd = writeFiles(temporaryFolder(), { "commands/long/work.ts": asking });
  const env = { MEANWHILE_HOME: `${cwd}/home` };
  const meanwhile = async (...words: string[]) => (await runCli(words, { cwd, env })).stdout.trim();
  const works = await meanwhile("long", "work", "--detach", "--quiet");
  const asks = await meanwhile("long", "work", "--asks", "--detach", "--quiet");
  try {
    for (const [task, sign, said] of [
      [works, /Page 1 of 4/, `It keeps running: meanwhile tasks watch ${works.slice(0, 8)}`],
      [asks, /What is your name\?/, "! Not answered: the question stays open until "],
    ] as const) {
      const { sees, press, exited, drawn } = startScreen(["tasks", "watch", task], { cwd, env });
      await sees(sign);
      press(keys.ctrlC);
      expect(await exited).toBe(0);
      expect(drawn()).toContain(said);
      expect(drawn()).not.toContain("Leave how?");
    }
    const { tasks } = JSON.parse(await meanwhile("tasks", "list", "--json")) as {
      tasks: { taskId: string; status: string }[];
    };
    expect(Object.fromEntries(tasks.map(({ taskId, status }) => [taskId, status]))).toEqual({
      [works]: "working",
      [asks]: "input_required",
    });
  } finally {
    await Promise.all([works, asks].map((task) => meanwhile("tasks", "cancel", task)));
  }
});

const wide = `import { defineCommand } from "meanwhile";
import { z } from "zod";

export default defineCommand({
  summary: "Build the quarterly report from everything that was sold, and put it where the others are",
  input: z.object({ format: z.enum(["pdf", "html"]).default("pdf").describe("Which of the forms that everybody can read it shall have in the end") }),
  examples: ["--format html --input somewhere/else/with-a-long-name.json --task-ttl 600000"],
  run() {
    throw new Error("The printer on the second floor has no paper, and nobody is there to put some into it");
  },
});
`;

describe("no line is wider than the screen and no word is broken", () => {
  const opened = shareAmongTests(async () => {
    const instructions =
      "Ask for the report of a quarter only when it is over, because it is built from everything that was sold in it";
    const cwd = writeFiles(temporaryFolder(), {
      "commands/report/build.ts": wide,
      "meanwhile.config.json": JSON.stringify({ instructions }),
    });
    const place = { cwd, env: { MEANWHILE_HOME: `${cwd}/home` } };
    await runCli(["report", "build", "--async"], place);
    return place;
  });

  const lines: Record<string, readonly string[]> = {
    "--help": ["--help"],
    "a command's --help": ["report", "build", "--help"],
    "call --help": ["call", "--help"],
    "tasks --help": ["tasks", "--help"],
    "diagnose --help": ["diagnose", "--help"],
    tools: ["tools"],
    "tasks list": ["tasks", "list"],
    config: ["config"],
    stats: ["stats"],
  };

  test.each(Object.entries(lines))("%s", async (_name, words) => {
    const place = await opened();
    const whole = await runCli(words, place);
    const wordsOf = (text: string) => new Set(text.split(/\s+/).filter((word) => word !== "\\"));
    for (const columns of [60, 80]) {
      const { exited, drawn } = startScreen(words, { ...place, columns, isDataShown: true });
      await exited;
      const shown = drawn().replaceAll("\r\n", "\n");
      // A path alone on its line cannot be broken.
      for (const line of shown.split("\n").filter((line) => !/^ *(\w+: )?\/\S+$/.test(line)))
        expect(widthOf(line), `${columns} columns: ${line}`).toBeLessThanOrEqual(columns);
      const broken = [...wordsOf(shown)].filter((word) => !wordsOf(whole.stdout + whole.stderr).has(word));
      // IDs of tasks are shorter on a screen.
      expect(broken.filter((word) => !/^\d|^[0-9a-f]{8}$/.test(word))).toEqual([]);
    }
  });

  test("tasks watch", async () => {
    const place = await opened();
    for (const columns of [60, 80]) {
      const { sees, press, exited, drawn } = startScreen(["tasks", "watch"], { ...place, columns });
      await sees(/The printer on .* …/);
      press(keys.ctrlC);
      expect(await exited).toBe(0);
      for (const line of drawn()
        .replaceAll(/\x1b\[\d+A\x1b\[0J/g, "")
        .split(/\r?\n/))
        expect(widthOf(line), line).toBeLessThanOrEqual(columns);
      expect(drawn()).toMatch(/ (on|the|second|floor|has|no|paper,|and) …/);
    }
  });
});

test("an error of the author's own code has its file and line in the terminal; its stack needs MEANWHILE_DEBUG", async () => {
  const cwd = writeFiles(temporaryFolder(), {
    "commands/report/build.ts": `import { CommandError, defineCommand } from "meanwhile";
import { z } from "zod";
import { readPrice } from "../../lib/price.ts";

export default defineCommand({
  summary: "Build",
  input: z.object({ isRefused: z.boolean().default(false) }),
  run({ isRefused }) {
    if (isRefused) throw new CommandError("Not today.");
    return readPrice(undefined);
  },
});
`,
    "lib/price.ts": "export function readPrice(row: any) {\n  return row.price;\n}\n",
  });
  const env = { MEANWHILE_HOME: `${cwd}/home` };
  const failed = `✗ Cannot read properties of undefined (reading 'price')\n  at lib/price.ts:2:14\n`;
  expect(await runCli(["report", "build"], { cwd, env })).toMatchObject({ code: 1, stderr: failed, stdout: "" });
  expect((await runCli(["report", "build", "--async", "--quiet"], { cwd, env })).stderr).toBe(failed);
  expect((await runCli(["report", "build", "--is-refused"], { cwd, env })).stderr).toBe("✗ Not today.\n");
  expect((await runCli(["report", "build"], { cwd, env: { ...env, MEANWHILE_DEBUG: "1" } })).stderr).toMatch(
    / {4}at .*build\.ts/,
  );
});

const form = `import { defineCommand } from "meanwhile";
import { z } from "zod";

export default defineCommand({
  summary: "Ask for an order",
  async run(_, task) {
    return await task.ask("What shall it be?", z.object({
      dish: z.string().min(3).max(20),
      table: z.number().int().min(1).max(12).default(7),
      word: z.string().refine((text) => text === "please", "say please"),
      gift: z.boolean().optional(),
    }));
  },
});
`;

test("a form names its limits and what Enter takes, and keeps valid answers when one was refused", async () => {
  const cwd = writeFiles(temporaryFolder(), { "commands/order/take.ts": form });
  const { sees, press, exited, data } = startScreen(["order", "take", "--json"], { cwd, columns: 160 });
  const { down, enter } = keys;
  await sees(/What shall it be\? \(dish\) \(3 to 20 characters\)/);
  press(`ab${enter}`);
  await sees(/3 to 20 characters, please\./);
  press(`c${enter}`);
  await sees(/\(table\) \(a whole number from 1 to 12; Enter takes 7\)/);
  press(`9${enter}`);
  await sees(/\(word\)/);
  press(`now${enter}`);
  await sees(/\(gift\)[\s\S]*Yes[\s\S]*No[\s\S]*\(no answer\)/);
  press(down + down + enter);
  // The last field was wrong; the others are as they were.
  await sees(/say please[\s\S]*\(dish\) \(3 to 20 characters; Enter takes abc\)/);
  press(enter);
  await sees(/\(table\) \(a whole number from 1 to 12; Enter takes 9\)/);
  press(enter);
  await sees(/Enter takes 9[\s\S]*\(word\)/);
  press(`please${enter}`);
  await sees(/Enter takes 9[\s\S]*\(gift\)[\s\S]*\(no answer\)/);
  press(down + down + enter);
  expect(await exited).toBe(0);
  expect(JSON.parse(data())).toEqual({ dish: "abc", table: 9, word: "please" });
});

describe("task IDs", () => {
  const quick = `import { defineCommand } from "meanwhile";
export default defineCommand({ summary: "Answer", run: () => ({ done: true }) });
`;
  const uuid = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/;

  test("have eight characters on a terminal and are whole in a pipe; every verb takes both", async () => {
    const cwd = writeFiles(temporaryFolder(), { "commands/work/quick.ts": quick });
    const env = { MEANWHILE_HOME: `${cwd}/home` };
    const screen = async (...words: string[]) => {
      const { exited, drawn } = startScreen(words, { cwd, env, isDataShown: true });
      return { code: await exited, text: drawn() };
    };
    const followed = await screen("work", "quick", "--async");
    const [, id = ""] = /^ {2}Task ([0-9a-f]{8})$/m.exec(followed.text) ?? [];
    expect(id).not.toBe("");
    expect((await screen("tasks", "list")).text).toMatch(new RegExp(`^${id} {2}work_quick {2}completed`, "m"));
    expect((await screen("tasks", "result", id)).text).toBe("done: true\n");
    const left = await screen("work", "quick", "--detach", "--new");
    expect(left.text).toMatch(/tasks watch ([0-9a-f]{8})\n\1\n$/);
    expect(left.text).not.toMatch(uuid);
    const [whole = ""] = uuid.exec((await runCli(["tasks", "list"], { cwd, env })).stdout) ?? [];
    expect(whole).toMatch(uuid);
    expect((await screen("tasks", "show", id)).text).toMatch(uuid);
    // The data alone is piped.
    const piped = startScreen(["tasks", "list"], { cwd, env });
    await piped.exited;
    expect(piped.data()).toContain(whole);
  });

  test("that are shortened are found among more tasks than a page has", async () => {
    const server = await openServer({
      in: "memory",
      store: "sqlite",
      commands: { quick: defineCommand({ summary: "x", run: () => ({}) }) },
    });
    const engine = await server.engine();
    const entry = server.runtime.catalog.get("quick");
    if (entry === undefined) throw new Error("There is no such command.");
    const caller = callerKey(server.runtime.localUser);
    const create = () =>
      engine.create({
        entry,
        input: {},
        caller,
        origin: { door: "terminal", folder: server.cwd },
        name: "quick",
        reason: "a test",
        isNew: true,
      });
    const { task } = await create();
    for (let at = 0; at < 100; at++) await create();
    await server.close();
    const { code, stdout } = await runCli(["tasks", "show", task.taskId.slice(0, 8)], {
      env: { MEANWHILE_HOME: server.home },
    });
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining(task.taskId) });
  });
});
