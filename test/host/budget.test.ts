import { readFileSync } from "node:fs";
import path from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { budgetOf, toSeconds } from "../../src/host/budget.ts";
import {
  findHost,
  type HostLimit,
  type HostProfile,
  knownHosts,
  sdkClient,
  unknownHost,
} from "../../src/host/profiles.ts";

type Door = "stdio" | "http";
const limitOf = (host: HostProfile, door: Door = "stdio") => ({ ...host.limits[door], host: host.name });
const tool = (limit: HostLimit) => ({ ...limit, host: "a-host" });

/**
 * What was measured: [host, clientInfo.name, door, seconds until a silent call is cut, our handle after, our heartbeat
 * every].
 */
const measured: readonly (readonly [
  string,
  string | undefined,
  Door,
  number | undefined,
  number,
  number | undefined,
])[] = [
  ["Claude Code, interactive", "claude-code", "stdio", 1800, 600, 600],
  ["Claude Code -p, stdio", "claude-code", "stdio", 1800, 600, 600],
  ["Claude Code -p, HTTP", "claude-code", "http", 300, 600, 100],
  ["Copilot CLI", "copilot-cli", "stdio", 180, 600, 60],
  ["Codex CLI", "codex-mcp-client", "stdio", 300, 285, undefined],
  ["Gemini CLI", "gemini-cli-mcp-client", "stdio", 600, 585, undefined],
  ["opencode", "opencode", "stdio", 60, 600, 20],
  ["Kilo CLI", "kilo", "stdio", 60, 45, undefined],
  ["Cline CLI", "@cline/core", "stdio", 60, 45, undefined],
  ["Continue CLI", "continue-cli-client", "stdio", 60, 45, undefined],
  ["Factory droid", "factory-cli", "stdio", undefined, 22.5, undefined],
  ["Qwen Code", "qwen-cli-mcp-client-probe", "stdio", undefined, 22.5, undefined],
  ["Claude Desktop", "claude-ai", "stdio", 60, 45, undefined],
  ["VS Code Copilot Chat", "Visual Studio Code", "stdio", undefined, 600, undefined],
  ["Cursor", "cursor-vscode", "stdio", undefined, 22.5, undefined],
  ["jcode", "jcode", "stdio", 30, 22.5, undefined],
  ["Jan", "Jan Streamable Client", "http", 30, 22.5, undefined],
  ["Zed", "Zed", "stdio", 60, 45, undefined],
  ["DeepSeek Reasonix", "reasonix", "stdio", 60, 45, undefined],
  ["Amazon Q", "whatever it calls itself", "stdio", 60, 22.5, undefined],
  ["Antigravity CLI", "whatever it calls itself", "stdio", 180, 22.5, undefined],
  ["Copilot for JetBrains", "whatever it calls itself", "stdio", 30, 22.5, undefined],
  ["ZCode", "whatever it calls itself", "stdio", 30, 22.5, undefined],
  ["a client without a name", undefined, "stdio", 60, 45, undefined],
  ["a client of the Python SDK", "mcp", "stdio", 60, 45, undefined],
  ["a client of the Rust SDK", "rmcp", "stdio", 60, 45, undefined],
];

describe("each host gets its handle in time", () => {
  test.each(measured)("host limit: %s", (_title, name, door, diesAfter, handleAfter, heartbeat) => {
    const host = findHost(name, {});
    expect([name, unknownHost.name, sdkClient.name]).toContain(host.name);
    const budget = budgetOf(limitOf(host, door), true);
    expect([budget.handleAfterMs / 1000, budget.heartbeatMs && budget.heartbeatMs / 1000]).toEqual([
      handleAfter,
      heartbeat,
    ]);
    if (diesAfter === undefined) return;
    // The longest silence it will ever hear from us is shorter than its patience, with and without a progress token.
    expect(Math.min(budget.handleAfterMs, budget.heartbeatMs ?? Number.POSITIVE_INFINITY)).toBeLessThan(
      diesAfter * 1000,
    );
    expect(budgetOf(limitOf(host, door), false).handleAfterMs).toBeLessThan(diesAfter * 1000);
  });

  test("every host we know is among them", () => {
    expect(measured.map(([, name]) => name)).toEqual(expect.arrayContaining(knownHosts.map(({ name }) => name)));
  });
});

describe("a budget", () => {
  test("leaves a quarter of a hard limit as margin, at most 15 s", () => {
    const handleAfter = (limitMs: number) => budgetOf(tool({ limitMs, isExtended: false }), true).handleAfterMs;
    expect([4_000, 40_000, 60_000, 61_000, 300_000].map(handleAfter)).toEqual([3_000, 30_000, 45_000, 46_000, 285_000]);
  });

  test("beats every third of a limit that progress extends, and keeps the call", () => {
    expect(budgetOf(tool({ limitMs: 180_000, isExtended: true }), true)).toEqual({
      handleAfterMs: 600_000,
      heartbeatMs: 60_000,
      why: "calls are kept open for 600 s at most",
    });
  });

  test("takes every limit for hard without a progress token", () => {
    expect(budgetOf(tool({ limitMs: 180_000, isExtended: true }), false)).toEqual({
      handleAfterMs: 165_000,
      graceMs: 7_500,
      heartbeatMs: undefined,
      why: "a-host cuts calls after 180 s without progress, and this one has no progress token",
    });
  });

  test.each([true, false])(
    "of a host that waits is the longest there is, without a beat (token: %s)",
    (hasProgressToken) => {
      expect(budgetOf(tool({ limitMs: undefined, isExtended: false }), hasProgressToken)).toMatchObject({
        handleAfterMs: 600_000,
        heartbeatMs: undefined,
      });
    },
  );

  test("never exceeds what the user wants to keep open", () => {
    const keepInlineMs = 20_000;
    for (const host of [...knownHosts, unknownHost, sdkClient])
      for (const door of ["stdio", "http"] as const)
        for (const hasProgressToken of [true, false])
          expect(budgetOf(limitOf(host, door), hasProgressToken, keepInlineMs)).toMatchObject({
            handleAfterMs: keepInlineMs,
            why: "calls are kept open for 20 s at most",
          });
  });

  test("says why, and does not claim what nobody measured", () => {
    const why = (name: string) => budgetOf(limitOf(findHost(name, {})), true).why;
    expect(why("codex-mcp-client")).toBe("codex-mcp-client cuts calls after 300 s");
    expect(why("cursor-vscode")).toBe("cursor-vscode is taken to cut calls after 30 s");
    expect(why("mcp")).toBe("an SDK's client is taken to cut calls after 60 s");
    expect(why("who?")).toBe("an unknown host is taken to cut calls after 30 s");
  });

  test("is always positive and always ahead of the limit", () => {
    const limits = fc.record({ limitMs: fc.integer({ min: 100, max: 604_800_000 }), isExtended: fc.boolean() });
    fc.assert(
      fc.property(
        limits,
        fc.boolean(),
        fc.integer({ min: 1, max: 604_800_000 }),
        (limit, hasProgressToken, keepInlineMs) => {
          const { handleAfterMs, heartbeatMs } = budgetOf(tool(limit), hasProgressToken, keepInlineMs);
          const silenceMs = Math.min(handleAfterMs, heartbeatMs ?? Number.POSITIVE_INFINITY);
          return (
            silenceMs > 0 &&
            silenceMs < limit.limitMs &&
            handleAfterMs <= keepInlineMs &&
            (heartbeatMs === undefined || hasProgressToken)
          );
        },
      ),
    );
  });

  test.each([
    [300_000, "300 s"],
    [42_400, "42 s"],
    [1_500, "1.5 s"],
    [40, "0 s"],
  ])("%d ms are written %s", (ms, text) => {
    expect(toSeconds(ms)).toBe(text);
  });
});

describe("docs/hosts.md", () => {
  const page = readFileSync(path.resolve(import.meta.dirname, "../../docs/hosts.md"), "utf8");
  const table = page.slice(page.indexOf("\n## The table"), page.indexOf("\nHow the right half"));
  const [, , ...rows] = table
    .split("\n")
    .filter((line) => line.startsWith("|"))
    .map((line) =>
      line
        .split("|")
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
  const door = (title = ""): Door => (title.endsWith("HTTP") ? "http" : "stdio");
  const nameIn = (cell = "") => (cell === "–" ? undefined : cell.replaceAll("`", ""));
  const inSeconds = (ms: number | undefined) => (ms === undefined ? "–" : `${ms / 1000} s`);

  test("has a row for every host we know, and for both doors where they differ", () => {
    const expected = knownHosts.flatMap(({ name, limits }) =>
      limits.stdio === limits.http ? [`${name} stdio`] : [`${name} stdio`, `${name} http`],
    );
    expect(
      rows.flatMap(([title, name]) => (nameIn(name) === undefined ? [] : `${nameIn(name)} ${door(title)}`)).toSorted(),
    ).toEqual(expected.toSorted());
  });

  test.each(rows.map((row) => [row[0], row] as const))("says of %s what the code does", (title, row) => {
    const [, name, diesAfter, isExtended, , , source, handleAfter, withoutToken, heartbeat] = row;
    const isSdk = title?.startsWith("an SDK's client") === true;
    const host = findHost(nameIn(name) ?? (isSdk ? undefined : "a name that nobody has seen"), {});
    const limit = limitOf(host, door(title));
    const budget = budgetOf(limit, true);
    expect({ handleAfter, withoutToken, heartbeat }).toEqual({
      handleAfter: inSeconds(budget.handleAfterMs),
      withoutToken: inSeconds(budgetOf(limit, false).handleAfterMs),
      heartbeat: inSeconds(budget.heartbeatMs),
    });
    if (host === unknownHost || host === sdkClient) return;
    const { limitMs, isAssumed } = limit;
    expect(diesAfter).toMatch(
      isAssumed
        ? /^unknown$/
        : limitMs === undefined
          ? /^waits$/
          : new RegExp(`^${toSeconds(limitMs)}( idle|, later 240 s)?$`),
    );
    expect(isExtended).toMatch(limit.isExtended ? /^yes$/ : /^(no|unknown|–)$/);
    const version = /version ([\d.]*\d)/.exec(host.source)?.[1];
    expect(source).toBe(version === undefined ? "threads" : `run, ${version}`);
  });
});
