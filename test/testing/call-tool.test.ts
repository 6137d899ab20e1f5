import { existsSync } from "node:fs";
import path from "node:path";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { callTool } from "../../src/testing/call-tool.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";

// How an author calls a tool in a test: no transport, the envelope a client gets.

const source = path.resolve(import.meta.dirname, "../../src/index.ts");
const zod = import.meta.resolve("zod");

const commands = () =>
  writeFiles(temporaryFolder(), {
    "report/build.ts": `import { defineCommand } from ${JSON.stringify(source)};
import { z } from ${JSON.stringify(zod)};
export default defineCommand({
  summary: "Build", input: z.object({ quarter: z.string() }), output: z.object({ file: z.string(), by: z.string() }),
  async run({ quarter }, task) {
    task.progress({ done: 1, total: 2, message: "half" });
    task.log.info("building");
    const { name } = await task.ask("Who are you?", z.object({ name: z.string() }));
    return { file: quarter + ".pdf", by: name };
  },
});`,
    "report/broken.ts": "export default 1;",
  });

test("A tool is called by its MCP name and answers with its envelope.", async () => {
  const reports: unknown[] = [];
  const envelope = await callTool(
    "report_build",
    { quarter: "Q3" },
    {
      commands: commands(),
      onProgress: (report) => reports.push(report),
      answer: () => ({ action: "accept", content: { name: "Ada" } }),
    },
  );
  expect(envelope).toMatchObject({
    success: true,
    data: { file: "Q3.pdf", by: "Ada" },
    log: [{ level: "info", text: "building" }],
  });
  expect(reports).toMatchObject([{ done: 1, total: 2, message: "half" }]);
});

test("Bad arguments are an envelope that names the field.", async () => {
  const envelope = await callTool("report_build", {}, { commands: commands() });
  expect(envelope).toMatchObject({
    success: false,
    data: {},
    messages: [{ type: "error", text: expect.stringContaining("quarter") }],
  });
});

test("A tool that is not there, or could not be loaded, is an envelope that says so.", async () => {
  const folder = commands();
  expect(await callTool("report_biuld", {}, { commands: folder })).toMatchObject({
    success: false,
    messages: [{ text: "Unknown tool report_biuld; did you mean report_build?" }],
  });
  expect(await callTool("report_broken", {}, { commands: folder })).toMatchObject({
    success: false,
    messages: [{ text: expect.stringContaining("broken.ts could not be loaded") }],
  });
});

test("Where nobody answers, a question fails the call; a prefix is part of the name.", async () => {
  const envelope = await callTool("wksm_report_build", { quarter: "Q3" }, { commands: commands(), toolPrefix: "wksm" });
  expect(envelope.success).toBe(false);
  expect(envelope.messages.at(-1)?.text).toContain("Who are you?");
});

test("The bundled commands are called by their names, too, where the folder has none of that name.", async () => {
  const home = temporaryFolder();
  const folder = commands();
  const envelope = await callTool("config_path", {}, { commands: folder, home });
  expect(envelope.success).toBe(true);
  expect(JSON.stringify(envelope.data)).toContain(home);
  const prefixed = await callTool("wksm_config_path", {}, { commands: folder, home, toolPrefix: "wksm" });
  expect(prefixed).toMatchObject({ success: true, data: envelope.data });
  expect(await callTool("config_path", {}, { commands: folder, home, bundled: false })).toMatchObject({
    success: false,
  });
  const own = writeFiles(temporaryFolder(), {
    "config/path.ts": `import { defineCommand } from ${JSON.stringify(source)};\nexport default defineCommand({ summary: "Mine", run: () => ({ mine: true }) });`,
  });
  expect(await callTool("config_path", {}, { commands: own })).toMatchObject({ data: { mine: true } });
});

test("A bundled command without a home leaves nothing behind.", async () => {
  const envelope = await callTool("config_path", {}, { commands: commands() });
  const { home } = envelope.data as { home: string };
  expect([envelope.success, existsSync(home)]).toEqual([true, false]);
});

test("A tool is called by each of its other names; arguments given by two are an envelope that says so.", async () => {
  const given = { endpoint: "http://127.0.0.1:1/mcp" };
  const refused = await callTool("diagnose_mcp_server", given, { commands: commands() });
  expect(refused.messages.at(-1)?.text).toMatch(/private|loopback|this machine/i);
  const twice = await callTool(
    "diagnose_mcp_server",
    { ...given, url: "http://127.0.0.1:1/mcp" },
    { commands: commands() },
  );
  expect(twice).toMatchObject({
    success: false,
    messages: [{ text: "`endpoint` is another name of `url`; give one of them." }],
  });
});

describe("in the folder of a project", () => {
  /** Makes a project with this config file the working folder of the test. */
  function enterProject(config: Readonly<Record<string, string>>): void {
    const project = writeFiles(temporaryFolder(), {
      ...config,
      "commands/report/build.ts": `import { defineCommand } from ${JSON.stringify(source)};
export default defineCommand({ summary: "Build", run: () => ({ built: true }) });`,
    });
    const cwd = vi.spyOn(process, "cwd").mockReturnValue(project);
    onTestFinished(() => cwd.mockRestore());
  }

  test.each([
    ["meanwhile.config.json", '{ "toolPrefix": "acme" }'],
    ["meanwhile.config.mjs", 'export default { toolPrefix: "acme" };'],
  ])("a tool has the `toolPrefix` of %s", async (name, text) => {
    enterProject({ [name]: text });
    expect(await callTool("acme_report_build")).toMatchObject({ success: true, data: { built: true } });
    expect(await callTool("report_build")).toMatchObject({
      success: false,
      messages: [{ text: expect.stringContaining("Unknown tool report_build; there are acme_report_build,") }],
    });
    expect(await callTool("report_build", {}, { toolPrefix: "" })).toMatchObject({ success: true });
  });

  test("a config that is wrong is an envelope that names the file and the setting", async () => {
    enterProject({ "meanwhile.config.json": '{ "toolPrefix": 7 }' });
    const { success, messages } = await callTool("report_build");
    expect(success).toBe(false);
    expect(messages[0]?.text).toMatch(/meanwhile\.config\.json.*toolPrefix/);
  });
});
