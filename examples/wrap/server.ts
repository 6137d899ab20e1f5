// Somebody else's server, as it was: made with SDK v1, it knows nothing of tasks, and nobody changes a line of it.
import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { z } from "zod";

const server = new McpServer({ name: "reports", version: "1.0.0" });

server.registerTool(
  "report_list",
  { description: "Lists the quarters", annotations: { readOnlyHint: true } },
  async () => ({ content: [{ type: "text", text: "Q1, Q2, Q3" }] }),
);

server.registerTool(
  "report_build",
  { description: "Builds the report of a quarter", inputSchema: { quarter: z.string() } },
  async ({ quarter }, { signal }) => {
    if (process.env.RUNS !== undefined) appendFileSync(process.env.RUNS, `${quarter}\n`);
    await sleep(8000, undefined, { signal });
    return { content: [{ type: "text", text: `${quarter}.pdf` }] };
  },
);

await server.connect(new StdioServerTransport());
