import path from "node:path";
import { describe, expect, test } from "vitest";
import { runCli } from "../helpers/cli.ts";
import { shareAmongTests, temporaryFolder, writeFiles } from "../helpers/home.ts";
import { taskIdOf } from "../helpers/project.ts";
import { openServer } from "../helpers/server.ts";
import { type Message, resultOf, type WireOptions } from "../helpers/wire.ts";

/** Names that a tool still answers to after a rename: over every door of MCP, and never in a list. */

const check = `import { defineCommand } from "meanwhile";
import { z } from "zod";
export default defineCommand({
  summary: "Check a server",
  input: z.object({ url: z.enum(["https://one.example", "https://two.example"]), full: z.boolean().default(false) }),
  long: true,
  effects: "read",
  aliases: ["probe", { name: "diagnose_server_at", arguments: { endpoint: "url" } }, { arguments: { address: "url" } }],
  run: (input) => input,
});\n`;
const byHand = `import { defineConfig } from "meanwhile";
import { z } from "zod";
export default defineConfig({
  bundled: true,
  mcp: (server) => server.registerTool("probe", { description: "By hand", inputSchema: z.object({}) }, () => ({ content: [{ type: "text", text: "by hand" }] })),
});\n`;
const one = "https://one.example";
const core = { revision: "2025-11-25" } as const;
const modern = {
  revision: "2026-07-28",
  capabilities: { extensions: { "io.modelcontextprotocol/tasks": {} } },
} as const;

/** One server: the local user's, and strangers let in. */
const served = shareAmongTests(async () => {
  const cwd = writeFiles(temporaryFolder(), { "commands/server/check.ts": check, "meanwhile.config.ts": byHand });
  const env = { MEANWHILE_AUTO_TASK_TOOLS: "diagnose_server_at", MEANWHILE_HOME: path.join(cwd, "home") };
  const home = env.MEANWHILE_HOME;
  const server = await openServer({ in: "http", projectCommands: "with bundled", store: "sqlite", cwd, home, env });
  const connect = (options: WireOptions, isAnonymous = false) =>
    server.client(options, { isAnonymous, hasNoStream: true });
  return {
    cwd,
    env,
    connect,
    local: await connect(core),
    modern: await connect(modern),
    stranger: await connect(core, true),
  };
});

const namesIn = (message: Message, list: "tools" | "prompts") =>
  (resultOf(message)[list] as { name: string }[]).map(({ name }) => name);

describe("a tool with other names", () => {
  test("answers to each of them, arguments and all, and is listed once", async () => {
    const { local } = await served();
    for (const [name, input] of [
      ["server_check", { url: one }],
      ["diagnose_server_at", { endpoint: one }],
      ["diagnose_server_at", { address: one }],
      ["server_check", { address: one }],
    ] as const)
      expect((await local.call(name, input)).structuredContent).toMatchObject({
        success: true,
        data: { url: one, full: false },
      });
    for (const list of ["tools", "prompts"] as const) {
      const names = namesIn(await local.request(`${list}/list`), list);
      expect(names).toContain("server_check");
      expect(
        names.filter((name) => ["diagnose_server_at", "diagnose_mcp_server", "ingest_legacy_sources"].includes(name)),
      ).toEqual([]);
    }
  });

  test("tells what is wrong by its own names", async () => {
    const { local } = await served();
    const text = async (input: object) =>
      (await local.call("diagnose_server_at", input)).structuredContent?.messages[0]?.text;
    expect(await text({})).toBe("Invalid argument for server_check: `url` is required.");
    expect(await text({ endpoint: one, url: one })).toBe("`endpoint` is another name of `url`; give one of them.");
  });

  test("is a task under its own name, and listed in MEANWHILE_AUTO_TASK_TOOLS by any", async () => {
    const { local, modern: client, cwd, env } = await served();
    const asked = taskIdOf(await local.call("diagnose_server_at", { endpoint: one }, { task: {} }));
    const listed = taskIdOf(await client.call("server_check", { url: one }));
    for (const [taskId, reason] of [
      [asked, "the client asked for a task"],
      [listed, "server_check is listed in MEANWHILE_AUTO_TASK_TOOLS and the client takes tasks"],
    ] as const) {
      const { stdout } = await runCli(["tasks", "show", taskId, "--json"], { cwd, env });
      expect(JSON.parse(stdout)).toMatchObject({ command: "server_check", input: { url: one }, reason });
    }
  });

  test("is completed by each of them, arguments and all", async () => {
    const { local } = await served();
    const complete = async (params: object) =>
      resultOf(await local.request("completion/complete", { ...params })).completion;
    const values = [one, "https://two.example"];
    expect(
      await complete({ name: "diagnose_server_at", argument: "endpoint", partial_argument: "https" }),
    ).toMatchObject({ values });
    expect(
      await complete({
        ref: { type: "ref/prompt", name: "diagnose_server_at" },
        argument: { name: "endpoint", value: "https://t" },
      }),
    ).toMatchObject({
      values: [values[1]],
    });
    const prompt = resultOf(
      await local.request("prompts/get", { name: "diagnose_server_at", arguments: { endpoint: one } }),
    );
    expect(JSON.stringify(prompt.messages)).toContain("Use the tool server_check with these arguments");
  });

  test("leaves a name to the tool that its author has registered by hand", async () => {
    const { local } = await served();
    expect((await local.call("probe")).content).toEqual([{ type: "text", text: "by hand" }]);
  });

  test("is never what a mistyped name is taken for", async () => {
    const { local } = await served();
    const { error } = await local.startCall("diagnose_server_att", {}).answer;
    expect(error?.message).not.toContain("diagnose_server_at?");
  });

  test("is not reached by a stranger where it is bundled", async () => {
    const { stranger, local } = await served();
    expect((await stranger.call("diagnose_server_at", { endpoint: one })).structuredContent).toMatchObject({
      success: true,
    });
    for (const name of ["diagnose_mcp_server", "ingest_legacy_sources", "discover_legacy_sources"]) {
      const [theirs, unknown] = await Promise.all([
        stranger.startCall(name, {}).answer,
        stranger.startCall("zzz_nothing", {}).answer,
      ]);
      expect(theirs.error).toEqual({ ...unknown.error, message: unknown.error?.message.replace("zzz_nothing", name) });
      const completing = await stranger.request("completion/complete", { name, partial_argument: "" });
      expect(completing.error?.code).toBe(-32602);
      expect((await stranger.request("prompts/get", { name })).error).toBeDefined();
    }
    expect((await local.call("diagnose_mcp_server", {})).structuredContent).toMatchObject({
      success: false,
      messages: [{ text: expect.stringContaining("`url` is required") }],
    });
  });
});

test("an alias that is the name of another tool: `tools` names both files and the cure, and the tool keeps its name", async () => {
  const alias = (name: string) => check.replace('"probe"', JSON.stringify(name));
  const cwd = writeFiles(temporaryFolder(), {
    "commands/server/check.ts": alias("server_ping"),
    "commands/server/ping.ts": check.replace(/aliases: .*/, ""),
  });
  const { code, stdout, stderr } = await runCli(["tools"], { cwd });
  expect({ code, stdout }).toEqual({ code: 1, stdout: expect.stringMatching(/^server_check .*\nserver_ping /m) });
  expect(stderr).toMatch(
    /The alias server_ping of .*check\.ts is the name of another tool, .*ping\.ts; take the alias out, or rename the tool\./,
  );
});
