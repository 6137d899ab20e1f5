import { randomUUID } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { keys, runCli, startScreen } from "../helpers/cli.ts";
import { shareAmongTests, temporaryFolder, writeFiles } from "../helpers/home.ts";
import { serveLines } from "../helpers/line-server.ts";
import { passTimeQuickly } from "../helpers/quick-time.ts";
import { openServer } from "../helpers/server.ts";
import { waitFor } from "../helpers/wait-for.ts";

/** `meanwhile call` at a terminal of 80 × 24. */

passTimeQuickly();

const slow = `import { appendFileSync, existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { defineCommand } from "meanwhile";
import { z } from "zod";

export default defineCommand({
  summary: "Print pages until it is let go",
  long: LONG,
  input: z.object({ file: z.string() }),
  output: z.object({ passed: z.string() }),
  async run({ file }, task) {
    let isNext = false;
    task.signal.addEventListener("abort", () => appendFileSync(file, "stopped\\n"));
    task.progress({ done: 1, total: 4, message: "Page 1 of 4" });
    appendFileSync(file, "started\\n");
    while (!existsSync(file + ".go")) {
      await sleep(20, undefined, { signal: task.signal });
      if (!existsSync(file + ".next") || isNext) continue;
      isNext = true;
      task.progress({ done: 2, total: 4, message: "Page 2 of 4" });
      appendFileSync(file, "page 2\\n");
    }
    appendFileSync(file, "ended\\n");
    return { passed: file };
  },
});
`;
const name = `import { defineCommand } from "meanwhile";
import { z } from "zod";

export default defineCommand({
  summary: "Ask for a name",
  output: z.object({ greeting: z.string() }),
  async run(_, task) {
    const { name } = await task.ask("What is your name?", z.object({ name: z.string() }));
    return { greeting: "Hello, " + name };
  },
});
`;

const served = shareAmongTests(() =>
  openServer({
    in: "http",
    projectCommands: "alone",
    store: "sqlite",
    cwd: writeFiles(temporaryFolder(), {
      "commands/print/pages.ts": slow.replace("LONG", "true"),
      "commands/print/plain.ts": slow.replace("LONG", "false"),
      "commands/ask/name.ts": name,
    }),
  }),
);

async function startServer() {
  const { home, ...server } = await served();
  const url = await server.url();
  const file = path.join(home, `trace-${randomUUID()}`);
  const traces = () => (existsSync(file) ? readFileSync(file, "utf8") : "");
  return {
    url,
    file,
    traces,
    hasTrace: (line: string) =>
      waitFor(
        () => traces().includes(line),
        () => `no "${line}" in: ${traces()}`,
      ),
  };
}

const { ctrlC, down, enter, esc } = keys;

const bar = /━{6}─{18}\s+25% {2}Page 1 of 4 {2}about \d+ s left/;

describe("a slow tool at a terminal", () => {
  test("shows a bar with the time left, no line of it wider than the screen; Ctrl-C asks, and cancels the task", async () => {
    const { url, file, hasTrace } = await startServer();
    const { drawn, sees, press, exited, data } = startScreen(["call", url, "print_pages", `file=${file}`]);
    await sees(bar);
    await sees(/Task [0-9a-f-]{36}/);
    press(ctrlC);
    await sees(/Leave how\?[\s\S]*keep it running[\s\S]*stay[\s\S]*cancel the task/);
    press(down + down + enter);
    expect(await exited).toBe(130);
    await hasTrace("stopped");
    expect(drawn()).toContain("✗ Cancelled.");
    expect(data()).toBe("");
    for (const frame of drawn()
      .split(/\r\x1b\[2K|\r?\n/)
      .filter((text) => text.includes("━")))
      expect(frame.length).toBeLessThan(80);
  });

  test("can be left alone: it goes on, and the words on the screen bring its result", async () => {
    const { url, file, traces } = await startServer();
    const { drawn, sees, press, exited } = startScreen(["call", url, "print_pages", `file=${file}`, "--async"]);
    await sees(/✓ Task created: [0-9a-f-]{36}/);
    await sees(/\[\d+\.\ds\] working - Page 1 of 4/);
    await sees(bar);
    press(ctrlC);
    await sees(/Leave how\?/);
    press(enter);
    expect(await exited).toBe(0);
    const words =
      /It keeps running: meanwhile (tasks result [0-9a-f-]{36} --wait --target \S+)/.exec(drawn())?.[1] ?? "";
    expect(words, drawn()).toContain(url);
    expect(traces()).toBe("started\n");
    writeFileSync(`${file}.go`, "");
    expect(await runCli(words.split(" "))).toMatchObject({ code: 0, stdout: `passed: ${file}\n`, stderr: "" });
    expect(traces()).toBe("started\nended\n");
  });

  test("goes on when one stays, to its result; the question has the screen for itself", async () => {
    const { url, file, hasTrace } = await startServer();
    const { drawn, sees, press, exited, data } = startScreen(["call", url, "print_pages", `file=${file}`, "--async"]);
    await sees(/working - Page 1 of 4/);
    await sees(bar);
    press(ctrlC);
    await sees(/Leave how\?/);
    writeFileSync(`${file}.next`, "");
    await hasTrace("page 2");
    press(down + enter);
    const news = await sees(/working - Page 2 of 4/);
    expect(drawn().indexOf(news)).toBeGreaterThan(drawn().indexOf("◇"));
    writeFileSync(`${file}.go`, "");
    expect(await exited).toBe(0);
    expect(data()).toBe(`passed: ${file}\n`);
    expect(drawn()).toMatch(/✓ print_pages finished in/);
  });

  test("goes on after Esc in the menu, and says so; a second Ctrl-C in the menu leaves and keeps the task running", async () => {
    const { url, file, traces } = await startServer();
    const { drawn, sees, press, exited } = startScreen(["call", url, "print_pages", `file=${file}`]);
    await sees(bar);
    press(ctrlC);
    await sees(/Leave how\?/);
    press(esc);
    await sees(/■ {2}Leave how\?[\s\S]*Nothing was chosen: the task goes on[\s\S]*Page 1 of 4/);
    expect(traces()).toBe("started\n");
    press(ctrlC);
    await waitFor(() => drawn().match(/◆ {2}Leave how\?/g)?.length === 2, drawn);
    press(ctrlC);
    expect(await exited).toBe(0);
    const words = /It keeps running: meanwhile (tasks result \S+ --wait --target \S+)/.exec(drawn())?.[1] ?? "";
    expect(words, drawn()).toContain(url);
    expect(drawn()).not.toContain("Cancelled");
    writeFileSync(`${file}.go`, "");
    expect(await runCli(words.split(" "))).toMatchObject({ code: 0, stdout: `passed: ${file}\n` });
    expect(traces()).toBe("started\nended\n");
  });

  test("that is only watched goes on: Ctrl-C asks nothing, leaves, and leaves its question open", async () => {
    const { url, file, traces } = await startServer();
    const detach = async (...words: string[]) =>
      (await runCli(["call", url, ...words, "--detach", "--quiet"])).stdout.trim();
    const [pages, asking] = await Promise.all([detach("print_pages", `file=${file}`), detach("ask_name")]);
    const watched = startScreen(["tasks", "watch", pages, "--target", url]);
    await watched.sees(bar);
    watched.press(ctrlC);
    expect(await watched.exited).toBe(0);
    expect(watched.drawn()).toContain("It keeps running: meanwhile tasks watch");
    expect(watched.drawn()).not.toContain("Leave how?");
    const asked = startScreen(["tasks", "watch", asking, "--target", url]);
    await asked.sees(/What is your name\?/);
    asked.press(ctrlC);
    expect(await asked.exited).toBe(0);
    expect(await runCli(["tasks", "answer", asking, "name=Ada", "--target", url])).toMatchObject({ code: 0 });
    expect(traces()).toBe("started\n");
  });

  test("that is no task is cancelled by Ctrl-C at once", async () => {
    const { url, file, hasTrace } = await startServer();
    const { drawn, sees, press, exited } = startScreen(["call", url, "print_plain", `file=${file}`]);
    await sees(bar);
    press(ctrlC);
    expect(await exited).toBe(130);
    expect(drawn()).not.toContain("Leave how?");
    await hasTrace("stopped");
  });

  test("that takes its time to be reached is said to be waited for, and then no more", async () => {
    const server = await serveLines(() => undefined);
    const { drawn, sees, exited } = startScreen(["call", server.target, "tool"]);
    await sees(/Connecting to /);
    expect(await exited).toBe(1);
    expect(drawn().slice(drawn().lastIndexOf("\x1b[2K")), "the line is taken away").not.toContain("Connecting");
    expect(drawn()).toContain("✗ The server did not begin to talk within 30 s.");
  });

  test("asks its questions there", async () => {
    const { url } = await startServer();
    const { sees, press, exited, data } = startScreen(["call", url, "ask_name"]);
    await sees(/What is your name\?/);
    press(`Ada${enter}`);
    expect(await exited).toBe(0);
    expect(data()).toBe("greeting: Hello, Ada\n");
  });
});
