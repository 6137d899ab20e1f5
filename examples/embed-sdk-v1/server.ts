import { setTimeout as sleep } from "node:timers/promises";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { durable } from "meanwhile";
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
    await sleep(2000, undefined, { signal });
    const { content } = await server.server.elicitInput({
      message: "Publish it?",
      requestedSchema: { type: "object", properties: { publish: { type: "boolean" } } },
    });
    return { content: [{ type: "text", text: `${quarter}.pdf${content?.publish === true ? ", published" : ""}` }] };
  },
);

// Before: await server.connect(new StdioServerTransport());
await durable(server).stdio();
