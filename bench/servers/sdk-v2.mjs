// The official SDK v2, served the way its own README shows: serveStdio(), or createMcpHandler() on node:http.
import { McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";

function createEchoServer() {
  const server = new McpServer({ name: "bench", version: "1.0.0" });
  server.registerTool(
    "echo_text",
    {
      description: "Give a text back",
      inputSchema: z.object({ text: z.string() }),
      outputSchema: z.object({ text: z.string() }),
    },
    async ({ text }) => ({ content: [{ type: "text", text: JSON.stringify({ text }) }], structuredContent: { text } }),
  );
  return server;
}

if (process.argv.includes("--durable")) await serveDurably();
else if (process.argv.includes("--hono")) await serveHono();
else if (process.argv.includes("--http")) await serveHttp();
else await serveOverStdio();

/** The same server with one line around it. */
async function serveDurably() {
  const { durable } = await import("../../dist/index.js");
  await durable(createEchoServer()).stdio();
}

async function serveHono() {
  const [{ createMcpHandler }, { serveFetch }] = await Promise.all([
    import("@modelcontextprotocol/server"),
    import("./in-hono.mjs"),
  ]);
  const handler = createMcpHandler(createEchoServer);
  serveFetch((request) => handler.fetch(request));
}

async function serveOverStdio() {
  const { serveStdio } = await import("@modelcontextprotocol/server/stdio");
  serveStdio(createEchoServer);
}

async function serveHttp() {
  const [
    { createServer },
    { createMcpHandler },
    { localhostHostValidation, localhostOriginValidation, toNodeHandler },
  ] = await Promise.all([
    import("node:http"),
    import("@modelcontextprotocol/server"),
    import("@modelcontextprotocol/node"),
  ]);
  const handle = toNodeHandler(createMcpHandler(createEchoServer));
  const isHostAllowed = localhostHostValidation();
  const isOriginAllowed = localhostOriginValidation();
  const server = createServer((request, response) => {
    if (isHostAllowed(request, response) && isOriginAllowed(request, response)) void handle(request, response);
  });
  server.listen(0, "127.0.0.1", () => console.error(`http://127.0.0.1:${server.address().port}/mcp`));
}
