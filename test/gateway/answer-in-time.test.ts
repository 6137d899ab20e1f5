import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, test } from "vitest";
import { FakeClock } from "../helpers/fake-clock.ts";
import { cleanUp, temporaryFolder, writeFiles } from "../helpers/home.ts";
import { moving, turns } from "../helpers/in-memory.ts";
import { openServer } from "../helpers/server.ts";
import { handleOf, overStreams, WireClient, type WireOptions } from "../helpers/wire.ts";

/** A host that gives up after 30 s, so a handle is due 22.5 s after the request has arrived. */
const limitMs = 30_000;
const handleMs = 22_500;

describe("wrap in front of an upstream that does not start", () => {
  test("answers a call with an error before the host gives up, where nothing is known of the upstream", async () => {
    const { clock, upstream, connect } = await wrapSlow();
    upstream.hold();
    const client = connect("2026-07-28");
    await moving(clock, client.begin());
    const { result, afterMs } = await answerTo(clock, client.call("work"));
    expect(afterMs).toBeLessThan(limitMs);
    expect(result.isError).toBe(true);
    expect(result.content?.[0]?.text).toContain(
      "work was not started, because its server is still starting. Call it again later.",
    );
    upstream.release();
  });

  test.each(["2025-11-25", "2026-07-28"] as const)(
    "answers a call of %s with a handle in time, where the tools of the upstream are known",
    async (revision) => {
      const { clock, upstream, connect } = await wrapSlow();
      const first = connect(revision);
      await moving(clock, first.begin());
      await moving(clock, first.request("tools/list"));
      upstream.hold();
      const client = connect(revision);
      await moving(clock, client.begin());
      const { result, afterMs } = await answerTo(clock, client.call("work"));
      expect(handleOf(result).status).toBe("working");
      expect(afterMs).toBeLessThanOrEqual(handleMs + 1_000);
      upstream.release();
    },
  );
});

/** The answer, and after what time it came. Rejects when the host has given up. */
async function answerTo<T>(clock: FakeClock, answer: Promise<T>): Promise<{ result: T; afterMs: number }> {
  const startedAt = clock.now();
  let afterMs: number | undefined;
  const settle = () => {
    afterMs = clock.now() - startedAt;
  };
  answer.then(settle, settle);
  while (afterMs === undefined && clock.now() < startedAt + limitMs) {
    await turns(2);
    clock.advance(10);
  }
  if (afterMs === undefined) throw new Error(`There was no answer ${limitMs} ms after the request.`);
  return { result: await answer, afterMs };
}

/** `meanwhile wrap --url` in this process, in front of a server that can be told not to answer. */
async function wrapSlow() {
  const clock = new FakeClock();
  const upstream = await startUpstream();
  const home = temporaryFolder();
  writeFiles(home, { "config.json": JSON.stringify({ hosts: { "my-host": { limitSeconds: limitMs / 1_000 } } }) });
  const wrap = { upstreams: { theirs: { url: upstream.url } } };
  const { openPipes } = await openServer({ in: "memory", wrap, store: "sqlite", home, clock });
  const connect = (revision: WireOptions["revision"]) => {
    const { stdin, stdout, close } = openPipes();
    cleanUp(close);
    return new WireClient(overStreams(stdin, stdout, close), { revision, name: "my-host" });
  };
  return { clock, upstream, connect };
}

/** An MCP server over HTTP with one tool, which never returns. */
async function startUpstream() {
  let held = Promise.withResolvers<void>();
  held.resolve();
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    await held.promise;
    if (request.method !== "POST") return void response.writeHead(405).end();
    const { id, method } = JSON.parse(Buffer.concat(parts).toString("utf8")) as { id?: number; method: string };
    if (id === undefined) return void response.writeHead(202).end();
    const result = results[method];
    const answer = result === undefined ? { error: { code: -32601, message: "Method not found" } } : { result };
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ jsonrpc: "2.0", id, ...answer }));
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  cleanUp(() => {
    held.resolve();
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    hold: () => {
      held = Promise.withResolvers();
    },
    release: () => held.resolve(),
  };
}

const results: Readonly<Record<string, object>> = {
  initialize: {
    protocolVersion: "2025-11-25",
    capabilities: { tools: {} },
    serverInfo: { name: "slow", version: "1" },
  },
  "tools/list": { tools: [{ name: "work", description: "Work", inputSchema: { type: "object" } }] },
};
