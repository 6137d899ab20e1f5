// mcp-proxy's proxyServer(), which its program has behind HTTP, between pipes on both sides: node mcp-proxy-stdio.mjs
// <command …>.
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { Server } from "@modelcontextprotocol/server";
import { StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import { proxyServer } from "mcp-proxy";

const [command, ...args] = process.argv.slice(2);
const client = new Client({ name: "mcp-proxy", version: "1.0.0" }, { capabilities: {} });
await client.connect(new StdioClientTransport({ command, args, env: process.env, stderr: "inherit" }));
const serverCapabilities = client.getServerCapabilities() ?? {};
const server = new Server(client.getServerVersion(), { capabilities: serverCapabilities });
await proxyServer({ client, server, serverCapabilities });
process.stdin.on("end", () => client.close().finally(() => process.exit(0)));
await server.connect(new StdioServerTransport());
