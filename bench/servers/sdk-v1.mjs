// The official SDK v1: McpServer on its own stdio transport, or on Streamable HTTP with sessions.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { z } from "zod";

function createEchoServer() {
  const server = new McpServer({ name: "bench", version: "1.0.0" });
  server.registerTool(
    "echo_text",
    { description: "Give a text back", inputSchema: { text: z.string() }, outputSchema: { text: z.string() } },
    async ({ text }) => ({ content: [{ type: "text", text: JSON.stringify({ text }) }], structuredContent: { text } }),
  );
  return server;
}

if (process.argv.includes("--durable")) await serveDurably();
else if (process.argv.includes("--http")) await serveHttp();
else await serveStdio();

/** The same server with one line around it. */
async function serveDurably() {
  const { durable } = await import("../../dist/index.js");
  await durable(createEchoServer()).stdio();
}

async function serveStdio() {
  const { StdioServerTransport } = await import("@modelcontextprotocol/sdk/server/stdio.js");
  await createEchoServer().connect(new StdioServerTransport());
}

async function serveHttp() {
  const { StreamableHTTPServerTransport } = await import("@modelcontextprotocol/sdk/server/streamableHttp.js");
  const sessions = new Map();
  const begin = async () => {
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => void sessions.set(id, transport),
      onsessionclosed: (id) => void sessions.delete(id),
    });
    await createEchoServer().connect(transport);
    return transport;
  };
  const server = createServer(async (request, response) => {
    const transport = sessions.get(request.headers["mcp-session-id"]) ?? (await begin());
    await transport.handleRequest(request, response);
  });
  server.listen(0, "127.0.0.1", () => console.error(`http://127.0.0.1:${server.address().port}/mcp`));
}
