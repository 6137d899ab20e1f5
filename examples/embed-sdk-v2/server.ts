import { setTimeout as sleep } from "node:timers/promises";
import { McpServer } from "@modelcontextprotocol/server";
import { durable } from "meanwhile";
import { z } from "zod";

function createReports(): McpServer {
  const server = new McpServer({ name: "reports", version: "1.0.0" });

  server.registerTool(
    "report_list",
    { description: "Lists the quarters", annotations: { readOnlyHint: true } },
    () => ({
      content: [{ type: "text", text: "Q1, Q2, Q3" }],
    }),
  );

  server.registerTool(
    "report_build",
    { description: "Builds the report of a quarter", inputSchema: z.object({ quarter: z.string() }) },
    async ({ quarter }, { mcpReq }) => {
      const progressToken = mcpReq._meta?.progressToken;
      for (let progress = 1; progress <= 4; progress++) {
        await sleep(1000, undefined, { signal: mcpReq.signal });
        const params = { progress, total: 4, message: `Page ${progress} of 4` };
        if (progressToken !== undefined)
          await mcpReq.notify({ method: "notifications/progress", params: { ...params, progressToken } });
      }
      return { content: [{ type: "text", text: `${quarter}.pdf` }] };
    },
  );
  return server;
}

// Before: serveStdio(createReports);
await durable(createReports, { tools: { report_build: { long: true } } }).stdio();
