import { setTimeout as sleep } from "node:timers/promises";
import { McpServer } from "@modelcontextprotocol/server";
import Fastify from "fastify";
import { durable } from "meanwhile";
import { z } from "zod";

function createReports(): McpServer {
  const server = new McpServer({ name: "reports", version: "1.0.0" });
  server.registerTool(
    "who_am_i",
    { description: "Says who calls", annotations: { readOnlyHint: true } },
    ({ http }) => ({
      content: [{ type: "text", text: String(http?.authInfo?.extra?.id) }],
    }),
  );
  server.registerTool(
    "report_build",
    { description: "Builds the report of a quarter", inputSchema: z.object({ quarter: z.string() }) },
    async ({ quarter }, { mcpReq }) => {
      await sleep(6000, undefined, { signal: mcpReq.signal });
      return { content: [{ type: "text", text: `${quarter}.pdf` }] };
    },
  );
  return server;
}

const mcp = durable(createReports, {
  identify: ({ headers }) => (headers.authorization === "Bearer key-of-ann" ? { kind: "app", id: "ann" } : undefined),
  hosts: { hasty: { limitSeconds: 6 } },
});

const app = Fastify();
app.all("/mcp", (request, reply) => {
  reply.hijack();
  mcp.node(request.raw, reply.raw, request.body);
});

const address = await app.listen({ port: Number(process.env.PORT ?? 3000), host: "127.0.0.1" });
console.log(`${address}/mcp`);
