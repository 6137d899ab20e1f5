// A bare node:http server that reads the JSON and answers what Meanwhile answers, whatever is asked: nothing is
// checked, found or run.
import { createServer } from "node:http";

function answer({ id, params }) {
  const messages = [{ type: "success", text: "echo_text finished in 0 ms", timestamp: new Date().toISOString() }];
  const structuredContent = { success: true, data: { text: params.arguments.text }, messages };
  const content = [{ type: "text", text: JSON.stringify(structuredContent) }];
  const _meta = {
    "meanwhile/call": { durationMs: 0.123 },
    "io.modelcontextprotocol/serverInfo": { name: "meanwhile", version: "0.1.0" },
  };
  return JSON.stringify({ jsonrpc: "2.0", id, result: { resultType: "complete", content, structuredContent, _meta } });
}

const server = createServer((request, response) => {
  const parts = [];
  request.on("data", (part) => parts.push(part));
  request.on("end", () => {
    const body = answer(JSON.parse(Buffer.concat(parts).toString("utf8")));
    response
      .writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(body) })
      .end(body);
  });
});
server.listen(0, "127.0.0.1", () => console.error(`http://127.0.0.1:${server.address().port}/mcp`));
