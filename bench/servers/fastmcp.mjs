// npm fastmcp: stdio, or its httpStream transport. It speaks 2025-11-25 and older.
import { createServer } from "node:net";
import { FastMCP } from "fastmcp";
import { z } from "zod";

const server = new FastMCP({ name: "bench", version: "1.0.0" });
server.addTool({
  name: "echo_text",
  description: "Give a text back",
  parameters: z.object({ text: z.string() }),
  outputSchema: z.object({ text: z.string() }),
  execute: async ({ text }) => ({ text }),
});

if (process.argv.includes("--durable")) {
  // The same server with one line around it.
  const { durable } = await import("../../dist/index.js");
  await durable(server).stdio();
} else if (process.argv.includes("--http")) {
  const port = await findFreePort();
  await server.start({ transportType: "httpStream", httpStream: { port, host: "127.0.0.1" } });
  console.error(`http://127.0.0.1:${port}/mcp`);
} else {
  await server.start({ transportType: "stdio" });
}

/** Its own `port: 0` would not say which port it took. */
function findFreePort() {
  return new Promise((resolve) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}
