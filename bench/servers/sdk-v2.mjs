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

if (process.argv.includes("--http")) await serveHttp();
else await serveOverStdio();

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
