import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { keys, startScreen } from "../helpers/cli.ts";
import { DaemonHomeHere } from "../helpers/daemon-here.ts";
import { holdTimer } from "../helpers/hold-timer.ts";
import { shareAmongTests, temporaryFolder, writeFiles } from "../helpers/home.ts";
import { gate, kindOf } from "../helpers/project.ts";
import { waitFor } from "../helpers/wait-for.ts";
import { handleOf, type WireClient } from "../helpers/wire.ts";

/** Tools that the `mcp` hook of a config registers, in the terminal and over MCP. */

const head = `import { appendFileSync, existsSync } from "node:fs";
import { defineConfig } from "meanwhile";
import { z } from "zod";
const text = (words) => ({ content: [{ type: "text", text: words }] });
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
`;

const tools = `
    server.registerTool("by_hand", {
      description: "Say it by hand.\\n\\nIt is said as it is.",
      annotations: { readOnlyHint: true },
      inputSchema: z.object({
        word: z.string().describe("What to say"),
        kind: z.enum(["round", "square"]).default("round").describe("How"),
        times: z.number().int().optional(),
      }),
    }, ({ word, kind, times }) => text(\`by hand: \${word} \${kind} \${times}\`));
    server.registerTool("say_no", { description: "Says no", inputSchema: z.object({}) }, () => {
      throw new Error("no luck today");
    });
    server.registerTool("ask_name", { description: "Asks", inputSchema: z.object({}) }, async (_input, ctx) => {
      const answer = await ctx.mcpReq.elicitInput({
        mode: "form", message: "Who?",
        requestedSchema: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
      });
      return text("hello " + JSON.stringify(answer));
    });
    server.registerTool("ask_leave", { description: "Asks", inputSchema: z.object({}) }, async (_input, ctx) => {
      const url = "https://example.com/leave";
      const answer = await ctx.mcpReq.elicitInput({ mode: "url", message: "Sign in", url, elicitationId: "1" });
      return text("leave " + answer.action);
    });
    server.registerTool("think", { description: "Asks a model", inputSchema: z.object({}) }, async (_input, ctx) => {
      const messages = [{ role: "user", content: { type: "text", text: "hi" } }];
      return text(JSON.stringify(await ctx.mcpReq.requestSampling({ messages, maxTokens: 5 })));
    });
    server.registerTool("count_up", { description: "Counts", inputSchema: z.object({}) }, async (_input, ctx) => {
      const { progressToken } = ctx.mcpReq._meta;
      const tell = (progress) => ctx.mcpReq.notify({
        method: "notifications/progress", params: { progressToken, progress, total: 4, message: "at " + progress },
      });
      for (let at = 1; at <= 3; at++) await tell(at);
      while (!ctx.mcpReq.signal.aborted) await pause(20);
      return text("stopped");
    });
    const hold = async ({ file }) => {
      appendFileSync(file, "started\\n");
      while (!existsSync(file + ".go")) await pause(20);
      return text("held");
    };
    const inputSchema = z.object({ file: z.string() });
    server.registerTool("hold", { description: "Holds", inputSchema }, hold);
    server.registerTool("hold_safely", { description: "Holds", inputSchema, annotations: { idempotentHint: true } }, hold);
    server.registerTool("note", { description: "Has the word of a folder", inputSchema: z.object({}) }, () => text("x"));
    server.registerTool("stats", { description: "Has the word of a verb", inputSchema: z.object({}) }, () => text("x"));
`;

const withHook = (
  hook: string,
  more = "",
) => `${head}export default defineConfig({ ${more} async mcp(server) {${hook}} });
`;

const counting = `import { defineCommand } from "meanwhile";
export default defineCommand({ summary: "Count the notes", effects: "read", run: () => ({ count: 4 }) });
`;

/** A project with a hook, and a home. */
class HookedProject extends DaemonHomeHere {
  readonly env: { readonly MEANWHILE_HOME: string };

  constructor(config: string) {
    const folder = temporaryFolder();
    const cwd = writeFiles(path.join(folder, "project"), {
      "meanwhile.config.mjs": config,
      "commands/note/count.mjs": counting,
    });
    super({ cwd, home: path.join(folder, "home") });
    this.env = { MEANWHILE_HOME: this.home };
  }

  get configFile(): string {
    return path.join(this.cwd, "meanwhile.config.mjs");
  }

  async type(...words: string[]) {
    return await this.run(words);
  }
}

describe("in the terminal", () => {
  const listed = shareAmongTests(async () => {
    const project = new HookedProject(withHook(tools, 'toolPrefix: "my",'));
    const { stdout, stderr, code } = await project.type("tools");
    expect({ stderr, code }).toEqual({ stderr: "", code: 0 });
    const { cwd, env } = project;
    return { cwd, env, table: stdout, run: (...words: string[]) => project.type(...words) };
  });

  test("`tools` lists them under their source; a name that is a verb or a folder is called by `call .`", async () => {
    const { table, run } = await listed();
    const [, hooked = ""] = table.split("\nRegistered in the `mcp` hook of the config\n");
    expect(table).toMatch(/Commands of this project\nmy_note_count +meanwhile note count +Count the notes \[read\]\n/);
    expect(hooked).toMatch(/^by_hand +meanwhile by_hand +Say it by hand\. \[read\]$/m);
    expect(hooked).toMatch(/^note +meanwhile call \. note +Has the word of a folder$/m);
    expect(hooked).toMatch(/^stats +meanwhile call \. stats +Has the word of a verb$/m);
    const all = JSON.parse((await run("tools", "--json")).stdout) as { tools: { name: string }[]; problems: object[] };
    expect(all.problems).toEqual([]);
    expect(all.tools.find(({ name }) => name === "by_hand")).toMatchObject({
      command: "meanwhile by_hand",
      source: "the `mcp` hook of the config file",
      annotations: { readOnlyHint: true },
      bundled: false,
    });
    expect(all.tools.find(({ name }) => name === "my_note_count")).toMatchObject({
      source: expect.stringMatching(/^the folders? .*commands/),
    });
  });

  test("one runs with its arguments, by its name or with hyphens; `stats` counts it under its own name", async () => {
    const { run } = await listed();
    expect(await run("by_hand", "hi", "--times", "2")).toMatchObject({ code: 0, stdout: "by hand: hi round 2\n" });
    const { code, stdout } = await run("by-hand", "--word", "hi", "--kind", "square", "--json", "--quiet");
    expect({ code, ...(JSON.parse(stdout) as object) }).toEqual({
      code: 0,
      content: [{ type: "text", text: "by hand: hi square undefined" }],
    });
    expect((await run("stats")).stdout).toMatch(/^by_hand +2 /m);
  });

  test.for([
    ["what is missing", ["by_hand"], 2, /by_hand needs word\.\n {2}See: meanwhile by_hand --help/],
    ["an option that is none", ["by_hand", "x", "--loud"], 2, /[Uu]nknown option '--loud'/],
    ["what does not fit", ["by_hand", "x", "--kind", "flat"], 1, /kind: Invalid option/],
    ["a tool that fails", ["say_no"], 1, /✗ no luck today/],
    ["a question that nobody can answer", ["ask_name"], 1, /asks «Who\?», and there is no terminal to answer in/],
    ["a question to a client", ["think"], 1, /think asks sampling\/createMessage .* in a terminal there is none/],
    ["a word that is nobody's", ["by_foot"], 2, /Unknown command `by_foot`/],
  ] as const)("%s is one clear sentence and an exit code", async ([, words, code, sentence]) => {
    const { run } = await listed();
    expect(await run(...words)).toMatchObject({ code, stderr: expect.stringMatching(sentence) });
  });

  test("names of files and verbs win", async () => {
    const { run } = await listed();
    expect(await run("note", "count")).toMatchObject({ code: 0, stdout: "count: 4\n" });
    expect((await run("note")).stdout).toContain("Commands of note");
    expect((await run("stats", "--json")).stdout).toMatch(/^\[/);
  });

  test("help and completion know them from the last list", async () => {
    const { run } = await listed();
    expect((await run("--help")).stdout).toMatch(
      /Registered in the `mcp` hook of the config\n {2}ask_leave\n {2}ask_name\n {2}by_hand\n/,
    );
    const { stdout } = await run("by_hand", "--help");
    expect(stdout).toMatch(
      /^Usage: meanwhile by_hand <word> \[options\]\n\nSay it by hand\.\n\nIt is said as it is\.\n/,
    );
    expect(stdout).toContain('How (one of round, square; default "round")');
    const complete = async (...words: string[]) => (await run("_complete", "--shell", "fish", "--", ...words)).stdout;
    expect(await complete("by")).toBe("values\nby_hand\tSay it by hand.\n");
    expect(await complete("by_hand", "x", "--kind", "")).toBe("values\nround\nsquare\n");
    expect(await complete("call", ".", "by_hand", "ki")).toBe("values\nkind=\tHow\n");
  });

  test("--async follows a task, --detach leaves one, and `tasks` knows it", async () => {
    const { run } = await listed();
    const followed = await run("by_hand", "hi", "--async");
    expect(followed).toMatchObject({ code: 0, stdout: "by hand: hi round undefined\n" });
    const { file } = gate().input;
    const { stdout: taskId } = await run("hold", file, "--detach");
    await waitFor(() => existsSync(file));
    expect((await run("hold", "--file", file, "--detach")).stderr).toContain("Joined the run");
    writeFileSync(`${file}.go`, "");
    expect(await run("tasks", "result", taskId.trim(), "--wait")).toMatchObject({ code: 0, stdout: "held\n" });
    expect(readFileSync(file, "utf8")).toBe("started\n");
    expect((await run("tasks", "list")).stdout).toMatch(/ hold +completed /);
  });

  test("a form and a link are put to the person; progress is a bar; Ctrl-C stops it", async () => {
    const { cwd, env } = await listed();
    const form = startScreen(["ask_name"], { cwd, env });
    await form.sees(/Who\?/);
    form.press(`Ada${keys.enter}`);
    expect({ code: await form.exited, data: form.data() }).toEqual({
      code: 0,
      data: 'hello {"action":"accept","content":{"name":"Ada"}}\n',
    });
    const link = startScreen(["ask_leave"], { cwd, env });
    await link.sees(/Sign in https:\/\/example\.com\/leave/);
    link.press("n");
    expect({ code: await link.exited, data: link.data() }).toEqual({ code: 0, data: "leave decline\n" });
    const bar = startScreen(["count_up"], { cwd, env });
    await bar.sees(/75%.*at 3/);
    bar.press(keys.ctrlC);
    expect(await bar.exited).toBe(130);
  });
});

test("what it says of itself is shown, never obeyed; a name that is no word is reached by `call` alone", async () => {
  const sequence = String.raw`\u001b]0;owned\u0007\r\u202e`;
  const said = `description: "Say ${sequence}.", inputSchema: z.object({ word: z.string().describe("Red ${sequence}") })`;
  const project = new HookedProject(
    withHook(
      ["plain", `odd ${sequence}`, "-rf", "$(reboot)"]
        .map((name) => `server.registerTool("${name}", { ${said} }, () => text("x"));`)
        .join("\n"),
    ),
  );
  const shown = [await project.type("tools")];
  for (const words of [["--help"], ["plain", "--help"], ["_complete", "--shell", "zsh", "--", ""]])
    shown.push(await project.type(...words));
  for (const { code, stdout } of shown) {
    expect(code).toBe(0);
    expect(stdout).not.toMatch(/[\u001b\u0007\r\u202e]/);
  }
  expect(shown[0]?.stdout).toMatch(/^\$\(reboot\) +meanwhile call \. \$\(reboot\) /m);
  for (const { stdout } of shown.slice(1)) expect(stdout).not.toMatch(/reboot|-rf|odd/);
  expect(await project.type("$(reboot)", "x")).toMatchObject({ code: 2 });
});

describe("a hook in trouble is named, and everything else is there", () => {
  const registersLate = `appendFileSync(import.meta.dirname + "/asked", "x"); await new Promise(() => {});`;

  test.for([
    [
      "fails",
      `throw new Error("the shelf is empty");`,
      /The `mcp` hook failed: the shelf is empty \(meanwhile\.config\.mjs:\d+/,
    ],
    ["takes too long", registersLate, /It has not said within 10 s what it registers/],
  ] as const)("one that %s", async ([, hook, sentence]) => {
    const project = new HookedProject(withHook(hook));
    const asked = path.join(project.cwd, "asked");
    /** Types a line. The limit of a hook that is slow ends when the hook has begun. */
    const typeUntil = async (words: readonly string[], isDone: (said: string) => boolean) => {
      rmSync(asked, { force: true });
      const isSlow = hook === registersLate;
      const endLimit = isSlow ? holdTimer(10_000) : () => {};
      const started = project.startCli(words);
      if (isSlow) await waitFor(() => existsSync(asked));
      endLimit();
      await waitFor(() => isDone(started.stderr()), started.stderr);
      return started;
    };
    const listing = await typeUntil(["tools", "--json"], (said) => said.includes("✗"));
    expect({ code: await listing.exited, stderr: listing.stderr() }).toEqual({
      code: 1,
      stderr: expect.stringMatching(new RegExp(`^✗ the \`mcp\` hook of the config file: ${sentence.source}`)),
    });
    const { tools: known, problems } = JSON.parse(listing.stdout()) as {
      tools: { name: string }[];
      problems: object[];
    };
    expect(known.map(({ name }) => name)).toEqual(["note_count"]);
    expect(problems).toEqual([{ file: "the `mcp` hook of the config file", text: expect.stringMatching(sentence) }]);
    expect(await project.type("note", "count")).toMatchObject({ code: 0, stdout: "count: 4\n" });
    const logged = /"level":50.*the `mcp` hook of the config file|ERROR.*the `mcp` hook of the config file/;
    await typeUntil(["serve", "--in-process"], (said) => logged.test(said));
  });

  test("one that began to fail says so to whoever calls its tool; one that registers less, too", async () => {
    const project = new HookedProject(withHook(tools));
    await project.type("tools");
    writeFileSync(project.configFile, withHook('throw new Error("the shelf is empty");'));
    expect(await project.type("by_hand", "x")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(
        "by_hand could not be loaded from the `mcp` hook of the config file: The `mcp` hook failed: the shelf is empty",
      ),
    });
    writeFileSync(project.configFile, withHook('server.registerTool("other", {}, () => text("x"));'));
    expect(await project.type("by_hand", "x")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("`by_hand` is no longer registered in the `mcp` hook"),
    });
    expect(await project.type("other", "--quiet")).toMatchObject({ code: 0, stdout: "x\n" });
  });
});

describe("a hook is run by nobody who has not been told to", () => {
  const marked = (marker: string) =>
    `import { appendFileSync } from "node:fs";\nappendFileSync(${JSON.stringify(marker)}, "run\\n");\n${withHook(tools).replace(/^import \{ appendFileSync, existsSync \}/, "import { existsSync }")}`;

  test("a name that it would register runs nothing before it was listed, nor do help, Tab and slips after that", async () => {
    const marker = path.join(temporaryFolder(), "marker");
    const project = new HookedProject(marked(marker));
    const unknown = {
      code: 2,
      stderr: expect.stringMatching(
        /meanwhile\.config\.mjs has not been loaded yet; `meanwhile tools` loads it\.\n✗ Unknown command `by_hand x`/,
      ),
    };
    expect(await project.type("by_hand", "x")).toMatchObject(unknown);
    expect(existsSync(marker)).toBe(false);
    await project.type("tools");
    rmSync(marker);
    for (const words of [
      ["--help"],
      ["by_hand", "--help"],
      ["help", "by-hand"],
      ["by_foot"],
      ["_complete", "--shell", "zsh", "--", "by_hand", ""],
      ["config", "path"],
      ["tasks", "list"],
    ])
      await project.type(...words);
    expect(existsSync(marker)).toBe(false);
  });

  test("a file that has changed since is a stranger's again: its help says so, and it takes no bundled command's place", async () => {
    const marker = path.join(temporaryFolder(), "marker");
    const hook = 'server.registerTool("vault", { inputSchema: z.object({}) }, () => text("mine"));';
    const project = new HookedProject(withHook(hook, "bundled: false,"));
    await project.type("tools");
    expect(await project.type("vault")).toMatchObject({ code: 0, stdout: "mine\n" });
    writeFileSync(
      project.configFile,
      `${withHook(hook, "bundled: false,")}appendFileSync(${JSON.stringify(marker)}, "run");\n`,
    );
    expect((await project.type("vault", "--help")).stdout).toContain("has not been loaded as it is now");
    expect(await project.type("vault", "status")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(`is a bundled command, and ${project.configFile} would take its place`),
    });
    expect(existsSync(marker)).toBe(false);
  });
});

describe("over MCP, behind a daemon", () => {
  const hasty = "hosts: { scenario: { limitSeconds: 0.2 } },";

  async function open() {
    const project = new HookedProject(withHook(tools, hasty));
    // Loads the config: the stdio proxy reads it in a child process otherwise.
    await project.type("tools");
    return { project, connect: () => project.connect({ words: [] }) };
  }

  /** The result of a task. Each request for it is answered before the client gives up. */
  const resultOfJob = (client: WireClient, job_id: string) =>
    waitFor(async () => {
      const result = await client.call("task_result", { job_id, wait_seconds: 30 });
      return kindOf(result) !== "handle" && result;
    });

  test("a tool that is silent for longer than its client waits: the handle, then the result, one run", async () => {
    const { project, connect } = await open();
    const client = await connect();
    const { input, seen, open: release, starts } = gate();
    const { job_id, next_action } = handleOf(await client.call("hold", input));
    await seen("started");
    release();
    expect(next_action).toMatchObject({ tool: "task_result" });
    expect((await resultOfJob(client, job_id)).content).toEqual([{ type: "text", text: "held" }]);
    expect(starts()).toBe(1);
    expect((await project.type("tasks", "result", job_id)).stdout).toBe("held\n");
    // A daemon writes its durations at the latest when it ends.
    await project.type("daemon", "stop");
    expect((await project.type("stats")).stdout).toMatch(/^hold +1 /m);
  });

  test("after a daemon has died, a tool that is safe by its annotations runs again, and the outcome of another is unknown", async () => {
    const { project, connect } = await open();
    const client = await connect();
    const [safe, unsafe] = [gate(), gate()];
    const safeJob = handleOf(await client.call("hold_safely", safe.input)).job_id;
    const unsafeJob = handleOf(await client.call("hold", unsafe.input)).job_id;
    for (const { seen } of [safe, unsafe]) await seen("started");
    await project.daemon.kill();
    const next = await connect();
    await safe.seen("started", 2);
    for (const { open: release } of [safe, unsafe]) release();
    expect((await resultOfJob(next, safeJob)).content).toEqual([{ type: "text", text: "held" }]);
    const lost = await resultOfJob(next, unsafeJob);
    expect(lost.isError).toBe(true);
    expect(JSON.stringify(lost)).toMatch(/interrupted.*outcome unknown/i);
    expect([safe.starts(), unsafe.starts()]).toEqual([2, 1]);
  });
});
