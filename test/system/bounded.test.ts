import { writeFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { temporaryFolder } from "../helpers/home.ts";
import { peakMbOf } from "../helpers/load.ts";
import { commands, startWithDaemon } from "../helpers/load-server.ts";
import { startGuardedHttp } from "../helpers/meanwhile.ts";
import { rounds } from "../helpers/rounds.ts";

/** What one connection may cost a server, in the memory of all its processes. */

test("many parallel results of 10 MB all arrive on one connection by way of the daemon, within bounds of memory", async () => {
  const { client, pids } = await startWithDaemon();
  const gate = path.join(temporaryFolder(), "gate");
  const ids = Array.from({ length: rounds.largeResults }, (_, at) => client.call("load_big", { mib: 9.5, gate, at }));
  await client.request("ping");
  writeFileSync(gate, "");
  const { peakMb } = await peakMbOf(
    pids,
    client.until(() => ids.every((id) => client.answers.has(id))),
  );
  expect(ids.filter((id) => !client.answers.has(id))).toEqual([]);
  expect(Math.min(...ids.map((id) => client.answers.get(id) ?? 0))).toBeGreaterThan(9.5 * 1024 * 1024);
  expect(peakMb, "megabytes of all processes").toBeLessThan(rounds.largeResultsPeakMb);
  await client.request("ping");
});

test("16 sessions of 2025-11-25 over HTTP that nobody ends, each with a result of 10 MB, stay within 550 MB", async () => {
  const { url, token, child } = await startGuardedHttp(commands, { env: { NODE_OPTIONS: "--max-old-space-size=256" } });
  const headers = {
    authorization: `Bearer ${token()}`,
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
  };
  const post = async (session: string | undefined, message: object) => {
    const response = await fetch(url, {
      method: "POST",
      headers: {
        ...headers,
        ...(session !== undefined && { "mcp-session-id": session, "mcp-protocol-version": "2025-11-25" }),
      },
      body: JSON.stringify({ jsonrpc: "2.0", ...message }),
    });
    let bytes = 0;
    for await (const part of response.body as unknown as AsyncIterable<Uint8Array>) bytes += part.length;
    return { session: response.headers.get("mcp-session-id") ?? "", status: response.status, bytes };
  };
  const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "load", version: "1" } };
  const call = { id: 2, method: "tools/call", params: { name: "load_big", arguments: { mib: 9.5 } } };
  const begun = async () => {
    const sizes: number[] = [];
    for (let n = 0; n < 16; n++) {
      const { session } = await post(undefined, { id: 1, method: "initialize", params });
      sizes.push((await post(session, call)).bytes);
    }
    return sizes;
  };
  const { result, peakMb } = await peakMbOf([child.pid ?? 0], begun());
  expect(Math.min(...result)).toBeGreaterThan(9.5 * 1024 * 1024);
  expect(peakMb, "megabytes of the server").toBeLessThan(550);
});
