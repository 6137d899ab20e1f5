import { createColors } from "picocolors";
import { expect, test } from "vitest";
import { upstreamsTable } from "../../../src/cli/screens/upstreams-view.ts";

test("upstreams stand in columns, and what is wrong with one stands below them", () => {
  const plain = { connections: 0, calls: 0, tools: 0, isThisProject: true, isWrapped: false };
  const table = upstreamsTable(
    [
      {
        ...plain,
        name: "git",
        target: "uvx",
        state: "open",
        connections: 2,
        calls: 1,
        tools: 12,
        era: "2025-11-25",
        daemon: { pid: 7 },
      },
      {
        ...plain,
        name: "linear",
        target: "https://mcp.linear.app/mcp",
        state: "down",
        trouble: "it\u001b[2J answers 503",
        isWrapped: true,
      },
    ],
    createColors(false),
    100,
  );
  expect(table).toBe(
    [
      "Upstream  State    Tools  Calls  Speaks      Daemon  Server",
      "git       open ×2  12     1      2025-11-25  7       uvx",
      "linear    down     –      0      –           –       https://mcp.linear.app/mcp (wrapped)",
      "✗ linear: it [2J answers 503",
      "",
    ].join("\n"),
  );
});
