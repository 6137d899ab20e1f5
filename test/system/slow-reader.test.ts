import { type IncomingMessage, request } from "node:http";
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { defineCommand } from "../../src/command/command.ts";
import { defaultLimits } from "../../src/task/limits.ts";
import { FakeClock, pass, settled, turns } from "../helpers/fake-clock.ts";
import { localKey, openServer } from "../helpers/server.ts";
import { waitFor } from "../helpers/wait-for.ts";

/** Not in the in-process tier: its megabytes would count in the memory that tests there measure. */
const big = defineCommand({
  summary: "Say a lot",
  input: z.object({ at: z.number() }),
  run: ({ at }) => ({ at, text: "x".repeat(4 * 1024 * 1024) }),
});

test("while another result waits for room, the connection that reads slowest is closed, and its call becomes a task", async () => {
  const clock = new FakeClock();
  const server = await openServer({
    in: "http",
    commands: { big },
    clock,
    settings: { limits: { ...defaultLimits, resultMb: 16 } },
  });
  const url = await server.url();
  const headers = {
    authorization: `Bearer ${server.token()}`,
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
  };
  const post = (session: Record<string, string>, message: object) =>
    new Promise<IncomingMessage>((resolve, reject) => {
      const sent = request(url, { method: "POST", headers: { ...headers, ...session } }, resolve).on("error", reject);
      onTestFinished(() => void sent.destroy());
      sent.end(JSON.stringify({ jsonrpc: "2.0", ...message }));
    });
  const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "slow", version: "1" } };
  const begun = await post({}, { id: 1, method: "initialize", params });
  begun.resume();
  const session = { "mcp-session-id": String(begun.headers["mcp-session-id"]), "mcp-protocol-version": "2025-11-25" };
  const slow = await post(session, { id: 2, method: "tools/call", params: { name: "big", arguments: { at: 1 } } });
  let isBroken = false;
  slow.on("error", () => (isBroken = true)).on("close", () => (isBroken = true));
  // It reads nothing.
  slow.pause();
  await turns(50);
  const client = await server.client("2025-11-25");
  const next = client.request("tools/call", { name: "big", arguments: { at: 2 } });
  await turns(50);
  await pass(clock, 1_500);
  expect(isBroken).toBe(false);
  const { result } = await settled(clock, next, 100);
  expect(JSON.stringify(result).length).toBeGreaterThan(4 * 1024 * 1024);
  slow.resume();
  await waitFor(() => isBroken);
  const engine = await server.engine();
  const ended = await waitFor(async () => {
    clock.advance(100);
    return (await engine.list(localKey, { statuses: ["completed"] })).tasks[0];
  });
  expect(ended).toMatchObject({ command: "big", reason: "its client went away before the answer" });
});
