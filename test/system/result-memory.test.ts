import { writeFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { temporaryFolder } from "../helpers/home.ts";
import { commands } from "../helpers/load-server.ts";
import { startGuardedHttp } from "../helpers/meanwhile.ts";

test.each([
  [20, "2025-11-25", "load_big"],
  [20, "2026-07-28", "load_big"],
  [10, "2025-11-25", "load_timed"],
  [10, "2026-07-28", "load_isolated"],
] as const)(
  "%i parallel results of 9 MB over HTTP with %s from %s all arrive from a server with a heap of 128 MB",
  async (count, revision, tool) => {
    const { url, token } = await startGuardedHttp(commands, {
      // On a busy machine a result may wait longer for its turn than a host waits: it would be a handle then.
      env: { NODE_OPTIONS: "--max-old-space-size=128", MEANWHILE_AUTO_TASK: "0" },
    });
    let lastId = 0;
    const isModern = revision === "2026-07-28";
    const _meta = {
      "io.modelcontextprotocol/protocolVersion": revision,
      "io.modelcontextprotocol/clientInfo": { name: "load", version: "1" },
      "io.modelcontextprotocol/clientCapabilities": {},
    };
    const post = async (session: string | undefined, method: string, params: object) => {
      const { name } = params as { name?: string };
      const response = await fetch(url, {
        method: "POST",
        headers: {
          authorization: `Bearer ${token()}`,
          "content-type": "application/json",
          accept: "application/json, text/event-stream",
          ...((isModern || session !== undefined) && { "mcp-protocol-version": revision }),
          ...(isModern && { "mcp-method": method, ...(name !== undefined && { "mcp-name": name }) }),
          ...(session !== undefined && { "mcp-session-id": session }),
        },
        body: JSON.stringify({
          jsonrpc: "2.0",
          id: ++lastId,
          method,
          params: { ...params, ...(isModern && { _meta }) },
        }),
      });
      let bytes = 0;
      for await (const part of response.body as unknown as AsyncIterable<Uint8Array>) bytes += part.length;
      return { session: response.headers.get("mcp-session-id") ?? undefined, bytes };
    };
    const gate = path.join(temporaryFolder(), "gate");
    const clientInfo = { name: "load", version: "1" };
    const { session } = isModern
      ? { session: undefined }
      : await post(undefined, "initialize", { protocolVersion: revision, capabilities: {}, clientInfo });
    const calls = Array.from({ length: count }, (_, at) =>
      post(session, "tools/call", { name: tool, arguments: { mib: 9, gate, at } }),
    );
    writeFileSync(gate, "");
    const sizes = (await Promise.all(calls)).map(({ bytes }) => bytes);
    expect(Math.min(...sizes)).toBeGreaterThan(9 * 1024 * 1024);
    await post(session, "ping", {});
  },
);
