import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { createServer } from "@modelcontextprotocol/server-everything/dist/server/index.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Facts, SurveyedTool } from "../../../src/diagnose/asking/facts.ts";
import type { Prediction } from "../../../src/diagnose/asking/hosts/predict.ts";
import type { Failed, Passed } from "../../../src/diagnose/check.ts";
import type { ToolToCall } from "../../../src/diagnose/diagnosis-target.ts";
import { hosts } from "../../../src/diagnose/suites/hosts/index.ts";
import { check } from "../../../src/diagnose/suites/hosts/slow-call.ts";
import { knownHosts } from "../../../src/host/profiles.ts";
import { type Fixture, startFixture } from "../../fixtures/diagnose/server.mjs";
import { ask, piped, reached, surveyed } from "../../helpers/diagnose.ts";
import { programAt } from "../../helpers/programs.ts";
import { passTimeQuickly } from "../../helpers/quick-time.ts";
import { breaksOf, checkOf, findingsIn } from "../../helpers/suite.ts";

passTimeQuickly();

let good: Fixture;
let facts: Facts;

beforeAll(async () => {
  good = await startFixture();
  facts = await surveyed(reached(good.url));
});
afterAll(() => good.close());

type Matrix = {
  columns: string[];
  named: string[];
  leftOut: number;
  rows: { name: string; cells: { state: string; text: string }[] }[];
};
const predictionsIn = (verdict: unknown) => (verdict as Passed | Failed).data?.predictions as readonly Prediction[];
const matrixIn = (verdict: unknown) => (verdict as Passed | Failed).data?.matrix as Matrix;
const foretold = (verdict: unknown, tool: string) =>
  Object.fromEntries(
    predictionsIn(verdict)
      .filter((one) => one.tool === tool)
      .map((one) => [one.host, one]),
  );

describe("server-everything's long-running operation, as it was measured with the hosts themselves", () => {
  const tool = "trigger-long-running-operation";
  let verdict: Awaited<ReturnType<typeof ask>>;

  beforeAll(async () => {
    const everything = programAt("server-everything.mjs", async ({ stdin, stdout, exit }) => {
      const { server, cleanup } = createServer();
      stdin.on("end", () => {
        cleanup();
        exit(0);
      });
      await server.connect(new StdioServerTransport(stdin, stdout));
    });
    verdict = await ask(check, piped(...everything), {
      tools: [{ name: tool, arguments: { duration: 4, steps: 4 } }],
      isFull: false,
    });
  });

  /**
   * Rows of the table of measurements: host, what a silent call dies at, whether progress extends it; then what must be
   * foretold.
   */
  test.each([
    // Cline CLI 3.0.65 | progressToken never sent | 60 s hard | impossible
    ["Cline CLI", { state: "cut", kind: "hard", limitSeconds: 60, survivesSeconds: 60 }],
    // Continue CLI 1.5.47 | progressToken never sent | 60 s hard | impossible
    ["Continue CLI", { state: "cut", kind: "hard", limitSeconds: 60, survivesSeconds: 60 }],
    // Codex CLI 0.166.0 | progressToken yes | 300 s hard | no
    ["Codex CLI", { state: "cut", kind: "hard", limitSeconds: 300, survivesSeconds: 300 }],
    // Gemini CLI 0.61.0 | progressToken yes | 600 s hard | no
    ["Gemini CLI", { state: "cut", kind: "hard", limitSeconds: 600, survivesSeconds: 600 }],
    // opencode 1.18.34 | progressToken yes | 60 s idle | yes
    ["opencode", { state: "progress", kind: "idle", limitSeconds: 60, survivesSeconds: null }],
    // Copilot CLI 1.0.102 | progressToken yes | 180 s idle | yes
    ["Copilot CLI", { state: "progress", kind: "idle", limitSeconds: 180, survivesSeconds: null }],
    // Claude Code 2.1.325 -p, stdio | progressToken yes | 1800 s idle | yes (idle)
    ["Claude Code", { state: "progress", kind: "idle", limitSeconds: 1800, survivesSeconds: null }],
    // Kilo CLI 7.7.9 | progressToken yes | 60 s | unknown
    ["Kilo CLI", { state: "unknown", kind: "hard", limitSeconds: 60, survivesSeconds: null }],
    // VS Code Copilot Chat, from threads | – | waits | –
    ["VS Code Copilot Chat", { state: "ok", kind: "waits", limitSeconds: null, survivesSeconds: null }],
    // Amazon Q, from threads | none | 60 s | no
    ["Amazon Q", { state: "cut", kind: "hard", limitSeconds: 60, survivesSeconds: 60 }],
    // Antigravity CLI, from threads | – | 180 s hard | no
    ["Antigravity CLI", { state: "cut", kind: "hard", limitSeconds: 180, survivesSeconds: 180 }],
    // Cursor, from threads | yes | ? | ?
    ["Cursor", { state: "unknown", kind: "unknown", limitSeconds: null, survivesSeconds: null }],
  ])("%s", (host, expected) => {
    expect(foretold(verdict, tool)[host]).toMatchObject(expected);
  });

  test("the user's own tool is one major finding, with every cure", () => {
    expect(findingsIn({ [check.id]: verdict })).toEqual([
      {
        id: "hosts/slow-call",
        subject: tool,
        severity: "major",
        title: `${tool} is cut by 9 of 21 hosts when it takes long: jcode at 30 s, Cline CLI, Continue CLI, Claude Desktop, Zed and Amazon Q at 60 s, Antigravity CLI at 180 s, Codex CLI at 300 s, Gemini CLI at 600 s`,
      },
    ]);
    const [finding] = (verdict as Failed).findings;
    for (const cure of [
      "within 20 s with a task",
      "tool_timeout_sec = 3600",
      "~/.gemini/settings.json",
      "cline_mcp_settings.json",
      "`meanwhile setup --wrap` shows",
      "meanwhile wrap -- ",
    ])
      expect(finding?.remedy).toContain(cure);
    expect(finding?.remedy).toContain(
      "No setting is known for Continue CLI, Claude Desktop, jcode, Amazon Q and Antigravity CLI.",
    );
    expect(finding?.remedy).not.toContain("notifications/progress");
  });

  test("the matrix has a row for each host and says how often progress comes", () => {
    const { columns, rows } = matrixIn(verdict);
    expect(rows.map(({ name }) => name)).toEqual([
      ...knownHosts.map(({ title }) => title),
      "Amazon Q",
      "Antigravity CLI",
      "Copilot for JetBrains",
      "ZCode",
    ]);
    const cell = rows.find(({ name }) => name === "opencode")?.cells[columns.indexOf(tool)];
    expect(cell).toEqual({
      state: "progress",
      text: "lives while progress comes at least every 60 s (it comes every 1 s)",
    });
  });
});

describe("a server whose tools answer quickly", () => {
  /** A tool that does not say that it is slow. */
  const saysNothing = { name: "read_book", taskSupport: undefined };

  test.each(["http", "stdio"] as const)("passes over %s, and says what would be cut", async (kind) => {
    const target = kind === "http" ? reached(good.url) : piped("server.mjs");
    const verdict = await ask(check, target, { facts: { ...facts, transport: kind }, isFull: false });
    expect(verdict, JSON.stringify(verdict)).toMatchObject({
      outcome: "passed",
      note: "No tool that was called is slow enough to be cut.",
    });
    expect(foretold(verdict, "read_slowly")["Cline CLI"]).toMatchObject({
      state: "ok",
      text: "answers quickly; cut there at 60 s",
      survivesSeconds: 60,
    });
    expect(foretold(verdict, "write_note")["Codex CLI"]).toMatchObject({
      state: "unknown",
      text: "if slow cut there at 300 s (not called here)",
    });
  });

  test("says nothing when no tool may be called, but how to allow it and what hosts would do", async () => {
    const tools = facts.tools.map((tool) => ({ ...tool, ...saysNothing, annotations: {} }));
    const verdict = await ask(check, reached(good.url), { facts: { ...facts, tools } });
    expect(verdict).toMatchObject({
      outcome: "skipped",
      why: "No tool was called: name your slow one with --tool <name>.",
    });
    expect(foretold(verdict, "read_book")["Codex CLI"]).toMatchObject({
      state: "unknown",
      text: "if slow cut there at 300 s (not called here)",
    });
  });

  test("says nothing when no call succeeded", async () => {
    const tools = facts.tools.filter(({ name }) => name === "read_slowly").map((tool) => ({ ...tool, ...saysNothing }));
    const verdict = await ask(check, reached(good.url), { facts: { ...facts, tools } });
    expect(verdict).toMatchObject({ outcome: "skipped", why: expect.stringContaining("No call succeeded") });
  });

  test("an error text is no quick answer, though isError is not set", async () => {
    const { url, close } = await startFixture({ flags: { errorText: "Error: the clock is broken" } });
    const tools = facts.tools.filter(({ name }) => name === "read_clock");
    const verdict = await ask(check, reached(url), { facts: { ...facts, tools }, isFull: false });
    await close();
    expect(verdict).toMatchObject({ outcome: "skipped", why: expect.stringContaining("No call succeeded") });
    expect(foretold(verdict, "read_clock")["Cline CLI"]).toMatchObject({ state: "unknown" });
    expect(JSON.stringify(verdict)).not.toContain("answers quickly");
  });

  test("passes when nothing was called and every tool is Meanwhile's", async () => {
    const tools = facts.tools.map((tool) => ({
      ...tool,
      annotations: {},
      json: { ...tool.json, _meta: { "meanwhile/tool": {} } },
    }));
    expect(await ask(check, reached(good.url), { facts: { ...facts, tools } })).toMatchObject({ outcome: "passed" });
  });

  test("with many tools those that matter come first, and what is left out is counted", async () => {
    const [tool] = facts.tools;
    const many = Array.from(
      { length: 230 },
      (_, at) => ({ ...tool, name: `tool_${at}`, annotations: {}, taskSupport: undefined }) as SurveyedTool,
    );
    const wanting = { ...tool, name: "wants_a_task", annotations: {}, taskSupport: "required" } as SurveyedTool;
    const last = {
      ...tool,
      name: "never_made",
      annotations: {},
      inputSchema: { type: "object" },
      taskSupport: undefined,
    } as SurveyedTool;
    const tools = [{ name: "never_made", arguments: {} }];
    const verdict = await ask(check, reached(good.url), {
      facts: { ...facts, tools: [...many, wanting, last] },
      tools,
    });
    expect(matrixIn(verdict)).toMatchObject({ named: ["never_made"], leftOut: 32 });
    expect(matrixIn(verdict).columns.slice(0, 3)).toEqual(["never_made", "wants_a_task", "tool_0"]);
    expect(matrixIn(verdict).columns).toHaveLength(200);
  });
});

describe("a slow tool of which no call succeeded is one major finding", () => {
  const titleOf = async (more: Partial<SurveyedTool>, tools: readonly ToolToCall[] = []) => {
    const slow = { ...facts.tools[2], name: "slow report", annotations: {}, ...more } as SurveyedTool;
    const verdict = await ask(check, reached(good.url), { facts: { ...facts, tools: [slow] }, isFull: false, tools });
    return findingsIn({ [check.id]: verdict });
  };
  const untested = (hosts: string, limits: string) => [
    {
      id: "hosts/slow-call",
      subject: "slow report",
      severity: "major",
      isUntested: true,
      title: `not tested: ${hosts} would cut it after ${limits}; name it with \`--tool 'slow report'\``,
    },
  ];

  test("the hosts that would cut a silent call earlier than it says are counted", async () => {
    expect(await titleOf({ description: "Takes ten minutes and reports nothing." })).toEqual(
      untested("16 hosts", "30 to 300 seconds"),
    );
    expect(await titleOf({ description: "Takes 45 seconds." })).toEqual(untested("4 hosts", "30 seconds"));
    expect(await titleOf({ description: "Takes 20 seconds." })).toEqual([]);
  });

  test("its own words and what to do are named", async () => {
    const slow = { ...facts.tools[2], annotations: {}, description: "Takes ten minutes." } as SurveyedTool;
    const verdict = (await ask(check, reached(good.url), { facts: { ...facts, tools: [slow] } })) as Failed;
    const [finding] = verdict.findings;
    expect(finding?.evidence).toEqual([{ kind: "received", text: "tools/list says of write_note: Takes ten minutes" }]);
    expect(finding?.remedy).toMatch(/^Name it with --tool, and with --args where it takes arguments/);
    expect(finding?.remedy).toMatch(/would be cut by jcode, [^.]* at 30 s, [^.]* and Codex CLI at 300 s\.$/);
  });

  test("a tool that can be a task counts, unless the host takes its tasks", async () => {
    const [finding] = await titleOf({ description: "Builds.", name: "build", taskSupport: "optional" });
    expect(finding?.title).toMatch(/^not tested: \d+ hosts would cut it after 30 to 600 seconds/);
  });

  test("a tool of Meanwhile's, and one that was called, are none", async () => {
    const json = { _meta: { "meanwhile/tool": {} } };
    expect(await titleOf({ description: "Takes ten minutes.", json })).toEqual([]);
    const readOnly = { annotations: { readOnlyHint: true }, name: "read_clock", inputSchema: { type: "object" } };
    expect(await titleOf({ description: "Takes ten minutes.", ...readOnly })).toEqual([]);
  });
});

/** What each broken server is told. */
const expected: Readonly<Record<string, string>> = {
  "hosts/slow-call":
    "read_slowly is cut by 9 of 21 hosts when it takes long: jcode at 30 s, Cline CLI, Continue CLI, Claude Desktop, Zed and Amazon Q at 60 s, Antigravity CLI at 180 s, Codex CLI at 300 s, Gemini CLI at 600 s",
  "hosts/slow-call~silent":
    "read_slowly is cut by 16 of 21 hosts when it takes long: jcode, Jan, Copilot for JetBrains and ZCode at 30 s, opencode, Kilo CLI, Cline CLI, Continue CLI, Claude Desktop, Zed, DeepSeek Reasonix and Amazon Q at 60 s, Copilot CLI and Antigravity CLI at 180 s, Codex CLI at 300 s, Gemini CLI at 600 s",
};

describe("a server with a slow tool is told who cuts it", () => {
  test.concurrent.each(breaksOf("hosts"))("%s", async (name) => {
    const { url, close } = await startFixture({ breaks: [name] });
    const verdict = await ask(check, reached(url), { facts, isFull: false });
    await close();
    // Nine of 21 hosts lose what it brings, and more than a third is major.
    expect(findingsIn({ [check.id]: verdict })).toEqual([
      { id: checkOf(name), subject: "read_slowly", severity: "major", title: expected[name] },
    ]);
    // It hands out tasks, and the interactive Claude Code takes them.
    expect(foretold(verdict, "read_slowly")["Claude Code"]).toMatchObject({
      state: "ok",
      text: "runs as a task in its interactive mode; with -p cut there after 300 s of silence",
    });
    const [finding] = (verdict as Failed).findings;
    expect(finding?.remedy).toContain(`meanwhile wrap --url ${url}`);
    expect(finding?.remedy?.includes("helps Copilot CLI and opencode")).toBe(name.endsWith("~silent"));
  });

  test("and every check has such a server", () => {
    expect(new Set(breaksOf("hosts").map(checkOf))).toEqual(new Set(hosts.map(({ id }) => id)));
  });
});

test("a tool that is refused without a task is asked for one: the interactive Claude Code can call it, others cannot", async () => {
  const { url, close } = await startFixture({ breaks: ["tasks/required", "tasks/required~extension"] });
  const verdict = await ask(check, reached(url), { isFull: false });
  await close();
  expect(verdict).toMatchObject({ outcome: "skipped", why: expect.stringContaining("No call succeeded") });
  const [wanting] = matrixIn(verdict).columns;
  expect(foretold(verdict, wanting ?? "")["Claude Code"]).toMatchObject({
    state: "ok",
    text: expect.stringContaining("interactive mode"),
  });
  expect(foretold(verdict, wanting ?? "")["Codex CLI"]).toMatchObject({
    state: "cut",
    text: expect.stringContaining("cannot call it"),
  });
});
