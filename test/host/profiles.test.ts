import { describe, expect, test } from "vitest";
import { findHost, isNamed, knownHosts, sdkClient, unknownHost } from "../../src/host/profiles.ts";

describe("a host", () => {
  test("is found by the name it gives, whitespace around it aside", () => {
    expect(findHost("codex-mcp-client", {})).toMatchObject({
      title: "Codex CLI",
      limits: { stdio: { limitMs: 300_000, isExtended: false } },
    });
    expect(findHost(" codex-mcp-client\n", {}).title).toBe("Codex CLI");
  });

  test.each([undefined, "", " ", "mcp", "rmcp", "Java SDK MCP Client"])(
    "%j is a client without a name of its own: it is taken to cut calls after 60 s",
    (name) => {
      expect(findHost(name, {})).toBe(sdkClient);
      expect(isNamed(name)).toBe(false);
      expect(sdkClient.limits.stdio).toEqual({ limitMs: 60_000, isExtended: false, isAssumed: true });
    },
  );

  test("a name in the user's config counts also where an SDK has it as a default", () => {
    expect(findHost("mcp", { mcp: { limitSeconds: 10 } }).limits.http).toEqual({ limitMs: 10_000, isExtended: false });
  });

  test.each([
    "Codex-MCP-Client",
    "codex",
    "__proto__",
    "constructor",
    "toString",
    "hasOwnProperty",
    "some client of 2031",
  ])("%j is nobody we know", (name) => {
    expect(findHost(name, {})).toBe(unknownHost);
  });

  test("nobody knows is taken to cut calls after 30 s, whatever progress it hears", () => {
    expect(unknownHost.limits).toEqual({
      stdio: { limitMs: 30_000, isExtended: false, isAssumed: true },
      http: unknownHost.limits.stdio,
    });
  });

  test("may wait differently at each door", () => {
    const { stdio, http } = findHost("claude-code", {}).limits;
    expect([stdio.limitMs, http.limitMs]).toEqual([1_800_000, 300_000]);
  });

  test.each(["factory-cli", "qwen-cli-mcp-client-probe", "cursor-vscode"])(
    "%s: its limit is unknown, and its source says so",
    (name) => {
      const host = findHost(name, {});
      expect(host).toMatchObject({ name, limits: unknownHost.limits });
      expect(host.source).toMatch(/^assumed: its limit is unknown;/);
    },
  );

  test("has a name of its own, a title and a source that says when or from whom", () => {
    expect(new Set(knownHosts.map((host) => host.name)).size).toBe(knownHosts.length);
    for (const host of knownHosts) {
      expect(host.title, host.name).not.toBe("");
      expect(host.source, host.name).toMatch(
        host.limits.stdio.isAssumed === true ? /^assumed: / : /^(measured \d{4}-\d\d, version \d|public threads)/,
      );
    }
  });
});

describe("the user's config", () => {
  test("changes a known host at both doors, and what it leaves out stays", () => {
    expect(findHost("claude-code", { "claude-code": { limitSeconds: 120 } })).toMatchObject({
      title: "Claude Code",
      limits: { stdio: { limitMs: 120_000, isExtended: true }, http: { limitMs: 120_000, isExtended: true } },
      source: "the user's config",
    });
    expect(findHost("claude-code", { "claude-code": { isExtended: false } }).limits).toEqual({
      stdio: { limitMs: 1_800_000, isExtended: false },
      http: { limitMs: 300_000, isExtended: false },
    });
  });

  test("makes a new host", () => {
    const own = { limitMs: 900_000, isExtended: true };
    expect(findHost("our-agent", { "our-agent": { limitSeconds: 900, isExtended: true } })).toEqual({
      name: "our-agent",
      title: "our-agent",
      limits: { stdio: own, http: own },
      source: "the user's config",
    });
  });

  test("turns an assumed limit into a known one only by naming it", () => {
    expect(findHost("cursor-vscode", { "cursor-vscode": { limitSeconds: 60 } }).limits.stdio).toEqual({
      limitMs: 60_000,
      isExtended: false,
    });
    expect(findHost("cursor-vscode", { "cursor-vscode": { isExtended: true } }).limits.stdio).toEqual({
      limitMs: 30_000,
      isExtended: true,
      isAssumed: true,
    });
  });

  test("gives a limit to a host that waits", () => {
    const vscode = { "Visual Studio Code": { limitSeconds: 30 } };
    expect(findHost("Visual Studio Code", {}).limits.stdio.limitMs).toBeUndefined();
    expect(findHost("Visual Studio Code", vscode).limits.stdio).toEqual({ limitMs: 30_000, isExtended: false });
  });

  test("leaves the others, and the table itself, alone", () => {
    const overrides = { codex: { limitSeconds: 1 }, "codex-mcp-client": { limitSeconds: 1 } };
    findHost("codex-mcp-client", overrides);
    expect(findHost("codex-mcp-client", {}).limits.stdio.limitMs).toBe(300_000);
    expect(findHost("kilo", overrides).limits.stdio.limitMs).toBe(60_000);
  });

  test("may hold a name that every object has", () => {
    const overrides = JSON.parse('{ "__proto__": { "limitSeconds": 7 } }') as Record<string, { limitSeconds: number }>;
    expect(findHost("__proto__", overrides).limits.http.limitMs).toBe(7_000);
    expect(findHost("constructor", overrides)).toBe(unknownHost);
  });
});
