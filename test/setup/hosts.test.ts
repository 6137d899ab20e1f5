import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import type { KnownValues } from "../../src/cli/completion/grammar.ts";
import { verb } from "../../src/cli/verbs/setup.ts";
import { fileOf, isInstalled } from "../../src/setup/host.ts";
import { hosts } from "../../src/setup/hosts/index.ts";
import type { Machine } from "../../src/setup/machine.ts";
import { hostNamed, launch, workplace } from "./workplace.ts";

const fixtures = path.resolve(import.meta.dirname, "../fixtures/setup");
const golden = (id: string, which: string) => readFileSync(path.join(fixtures, id, which));

describe("a file as its host has it", () => {
  test.each(hosts.map(({ id }) => id))("%s: added, added again, removed, and every byte is as it was", (id) => {
    const before = golden(id, "before");
    const { add, remove, file } = workplace(id, before);
    const { kind, backup } = add();
    expect(kind).toBe("added");
    expect(readFileSync(backup ?? ""), "the backup").toEqual(before);
    const after = readFileSync(file);
    expect(after.toString()).toBe(golden(id, "after").toString());
    expect(add()).toEqual({ kind: "unchanged", backup: undefined });
    expect(readFileSync(file)).toEqual(after);
    expect(remove().kind).toBe("removed");
    expect(readFileSync(file)).toEqual(before);
    expect(remove().kind).toBe("absent");
  });

  test.each(hosts.map(({ id }) => id))("%s: without a record, our entry goes and every other line stays", (id) => {
    const { read, remove, file } = workplace(id, golden(id, "after"));
    expect(remove().kind).toBe("removed");
    const [before, left] = [golden(id, "before").toString(), read()];
    const isMade = ["claude-desktop", "gemini", "windsurf", "zed"].includes(id);
    if (!isMade) expect(left, "nobody needs to know what was there: it can be seen").toBe(before);
    for (const line of before.split("\n").filter((text) => !/^\W*$/.test(text)))
      expect(left.replaceAll(",", ""), file).toContain(line.replaceAll(",", ""));
    expect(left).not.toContain("/opt/meanwhile");
  });

  test("every host has one, and nobody else", () => {
    expect(globSync("*", { cwd: fixtures }).toSorted()).toEqual(hosts.map(({ id }) => id).toSorted());
  });
});

describe("where the files are", () => {
  const machine = (platform: Machine["platform"], given: Partial<Machine> = {}): Machine => ({
    platform,
    home: platform === "win32" ? "C:\\Users\\ada" : platform === "darwin" ? "/Users/ada" : "/home/ada",
    project: platform === "win32" ? "C:\\reports" : "/reports",
    env: {},
    isThere: () => false,
    list: () => [],
    ...given,
  });
  const files = (on: Machine) => Object.fromEntries(hosts.map((host) => [host.id, host.userFile(on)]));

  test("on Linux", () => {
    expect(files(machine("linux"))).toEqual({
      "claude-code": "/home/ada/.claude.json",
      "claude-desktop": "/home/ada/.config/Claude/claude_desktop_config.json",
      codex: "/home/ada/.codex/config.toml",
      cursor: "/home/ada/.cursor/mcp.json",
      vscode: "/home/ada/.config/Code/User/mcp.json",
      gemini: "/home/ada/.gemini/settings.json",
      opencode: "/home/ada/.config/opencode/opencode.json",
      copilot: "/home/ada/.copilot/mcp-config.json",
      cline: "/home/ada/.cline/data/settings/cline_mcp_settings.json",
      windsurf: "/home/ada/.codeium/windsurf/mcp_config.json",
      zed: "/home/ada/.config/zed/settings.json",
    });
  });

  test("on macOS and Windows, where they differ", () => {
    expect(files(machine("darwin"))).toMatchObject({
      "claude-desktop": "/Users/ada/Library/Application Support/Claude/claude_desktop_config.json",
      vscode: "/Users/ada/Library/Application Support/Code/User/mcp.json",
      opencode: "/Users/ada/.config/opencode/opencode.json",
      zed: "/Users/ada/.config/zed/settings.json",
    });
    expect(files(machine("win32", { env: { APPDATA: "C:\\Roaming" } }))).toMatchObject({
      "claude-code": "C:\\Users\\ada\\.claude.json",
      "claude-desktop": "C:\\Roaming\\Claude\\claude_desktop_config.json",
      codex: "C:\\Users\\ada\\.codex\\config.toml",
      vscode: "C:\\Roaming\\Code\\User\\mcp.json",
      opencode: "C:\\Users\\ada\\.config\\opencode\\opencode.json",
      zed: "C:\\Roaming\\Zed\\settings.json",
    });
  });

  test("a variable of the host's own moves its file", () => {
    const env = {
      CLAUDE_CONFIG_DIR: "/c",
      CODEX_HOME: "/x",
      COPILOT_HOME: "/o",
      XDG_CONFIG_HOME: "/g",
      CLINE_MCP_SETTINGS_PATH: "/l/mcp.json",
      OPENCODE_CONFIG: "/e/own.json",
    };
    expect(files(machine("linux", { env }))).toMatchObject({
      "claude-code": "/c/.claude.json",
      "claude-desktop": "/g/Claude/claude_desktop_config.json",
      codex: "/x/config.toml",
      vscode: "/g/Code/User/mcp.json",
      opencode: "/e/own.json",
      copilot: "/o/mcp-config.json",
      cline: "/l/mcp.json",
      zed: "/g/zed/settings.json",
    });
  });

  test("what is on the disk decides where a host has two places", () => {
    const store = "C:\\Users\\ada\\AppData\\Local\\Packages\\Claude_pzs8sxrjxfjjc\\LocalCache\\Roaming\\Claude";
    const windows = machine("win32", {
      list: () => ["Other_1", "Claude_pzs8sxrjxfjjc"],
      isThere: (file) => file === store,
    });
    expect(files(windows)["claude-desktop"]).toBe(`${store}\\claude_desktop_config.json`);
    const extension = "/home/ada/.config/Code/User/globalStorage/saoudrizwan.claude-dev";
    expect(files(machine("linux", { isThere: (file) => file === extension })).cline).toBe(
      `${extension}/settings/cline_mcp_settings.json`,
    );
    const jsonc = "/home/ada/.config/opencode/opencode.jsonc";
    expect(files(machine("linux", { isThere: (file) => file === jsonc })).opencode).toBe(jsonc);
  });

  test("a project has files for eight of them", () => {
    expect(hosts.map((host) => fileOf(host, "project", machine("linux")))).toEqual([
      "/reports/.mcp.json",
      undefined,
      "/reports/.codex/config.toml",
      "/reports/.cursor/mcp.json",
      "/reports/.vscode/mcp.json",
      "/reports/.gemini/settings.json",
      "/reports/opencode.json",
      "/reports/.mcp.json",
      undefined,
      undefined,
      "/reports/.zed/settings.json",
    ]);
  });

  test("installed is a host whose folder is there, or whose program is on the PATH", () => {
    const codex = hostNamed("codex");
    expect(isInstalled(codex, machine("linux"))).toBe(false);
    expect(isInstalled(codex, machine("linux", { isThere: (file) => file === "/home/ada/.codex" }))).toBe(true);
    expect(
      isInstalled(codex, machine("linux", { env: { PATH: "/a:/b" }, isThere: (file) => file === "/b/codex" })),
    ).toBe(true);
    expect(
      isInstalled(
        codex,
        machine("win32", { env: { Path: "C:\\a;C:\\b" }, isThere: (file) => file === "C:\\b\\codex.cmd" }),
      ),
    ).toBe(true);
  });
});

describe("entries", () => {
  const withEnv = { ...launch, env: { MEANWHILE_HOME: "/var/mw" } };

  test("opencode has one list for command and arguments, and its own word for variables", () => {
    expect(hostNamed("opencode").toEntry(withEnv)).toEqual({
      type: "local",
      command: [launch.command, ...launch.args],
      enabled: true,
      environment: { MEANWHILE_HOME: "/var/mw" },
    });
  });

  test("a file of opencode's second version has its servers one level deeper", () => {
    const { add, read, remove } = workplace(
      "opencode",
      '{\n  "mcp": {\n    "servers": {\n      "a": { "type": "local", "command": ["a"] },\n    },\n  },\n}\n',
    );
    add();
    expect(read()).toMatch(/"servers": \{\n {6}"a": .*\n {6}"meanwhile": \{\n/);
    remove();
    expect(read()).not.toContain("meanwhile");
    const named = hostNamed("opencode").place({ mcp: { servers: { type: "local", command: ["x"] } } });
    expect(named, "a server that is called servers").toEqual(["mcp"]);
  });

  test("one file of a project serves Claude Code and Copilot CLI", () => {
    const { file, add } = workplace("claude-code", "{}");
    add();
    add(hostNamed("copilot").toEntry(launch));
    expect(add().kind, "what the other host needs does not disturb").toBe("unchanged");
    expect(JSON.parse(readFileSync(file, "utf8"))).toEqual({
      mcpServers: { meanwhile: { type: "stdio", ...launchPart, tools: ["*"] } },
    });
  });

  const launchPart = { command: launch.command, args: launch.args };

  test("the shell completes the hosts there are", async () => {
    const offer = await verb.operands?.[0]?.values?.("", new Map(), {} as KnownValues);
    expect(offer).toEqual({ kind: "values", suggestions: hosts.map(({ id }) => ({ value: id })) });
  });
});
