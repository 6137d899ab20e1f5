import { describe, expect, test, vi } from "vitest";
import { revisions } from "../../../src/wire/revisions.ts";
import { moving } from "../../helpers/in-memory.ts";
import { firstHeld, openMounted, reach, serve, toCall, waysIn } from "../../helpers/mounted.ts";

/** MCP inside somebody else's app, by both ways in: what an own door promises holds here as well. */

const { init } = toCall("add", { a: 1, b: 2 });
const guard = { timeout: 50_000 };

describe.each(waysIn)("by %s", (way) => {
  test.each(revisions)("a client of %s calls", async (revision) => {
    const client = await (await reach(await openMounted(), way)).connect(revision);
    expect(await client.call("add", { a: 1, b: 2 })).toMatchObject({ structuredContent: { data: { sum: 3 } } });
  });

  test.each(["/", "/mcp", "/mcp/", "/api/v1/mcp/below", "/healthz", "/mcp?a=b", "//", "/%00"])(
    "%s is where the app has put us",
    async (path) => {
      const { url, fetch } = await reach(await openMounted(), way, path);
      expect((await fetch(url, init)).status).toBe(200);
    },
  );

  test("a session has its stream, comes back for what it missed, and ends", async () => {
    const mounted = await openMounted();
    const reached = await reach(mounted, way);
    const client = await reached.connect("2025-11-25");
    const own = await client.openStream();
    expect([own.status, own.type]).toEqual([200, "text/event-stream"]);
    const call = client.startCall("hold");
    const run = await firstHeld(mounted);
    const eventId = await vi.waitFor(() => {
      const found = client.exchanges.find(({ method }) => method === "tools/call")?.events[0]?.id;
      expect(found).toBeDefined();
      return found;
    }, guard);
    call.drop();
    await call.answer.catch(() => undefined);
    // The server may not have noticed yet that the first stream is broken.
    const again = await vi.waitFor(async () => {
      const stream = await client.openStream(eventId);
      expect(stream.status).toBe(200);
      return stream;
    }, guard);
    await moving(mounted.clock, again.over);
    expect(again.messages).toMatchObject([
      { id: call.id, result: { structuredContent: { data: { status: "working" } } } },
    ]);
    expect(run.signal.aborted).toBe(false);
    const ended = await reached.fetch(reached.url, { method: "DELETE", headers: client.headersOf() });
    expect(ended.status).toBe(200);
    await own.over;
    expect((await client.request("ping")).error?.message).toMatch(/Session not found/);
  });

  test("a call that reports progress is a stream, and ends with its answer", async () => {
    const mounted = await openMounted();
    const client = await (await reach(mounted, way)).connect("2026-07-28");
    const call = client.startCall("hold", {}, { meta: { progressToken: "p" } });
    const run = await firstHeld(mounted);
    run.report(3);
    await client.comes("notifications/progress");
    run.release();
    const { result } = await moving(mounted.clock, call.answer);
    expect(result).toMatchObject({ structuredContent: { data: { isHeld: true } } });
    expect(call.messages.map(({ method }) => method)).toEqual(["notifications/progress", undefined]);
  });

  test("who goes away has cancelled, on 2026-07-28: before there was an answer, and in the middle of it", async () => {
    const mounted = await openMounted();
    const client = await (await reach(mounted, way)).connect("2026-07-28");
    const silent = client.startCall("hold");
    const first = await firstHeld(mounted);
    silent.drop();
    await vi.waitFor(() => expect(first.signal.aborted).toBe(true), guard);
    const talking = client.startCall("hold", {}, { meta: { progressToken: "p" } });
    await vi.waitFor(() => expect(mounted.held).toHaveLength(2), guard);
    mounted.held[1]?.report(1);
    await client.comes("notifications/progress");
    talking.drop();
    await vi.waitFor(() => expect(mounted.held[1]?.signal.aborted).toBe(true), guard);
  });

  test("tasks are listened to", async () => {
    const mounted = await openMounted();
    const tasks = { extensions: { "io.modelcontextprotocol/tasks": {} } };
    const client = await (await reach(mounted, way)).connect("2026-07-28", { capabilities: tasks });
    const { taskId } = (await moving(mounted.clock, client.call("later"))) as unknown as { taskId: string };
    const listening = client.start("subscriptions/listen", { notifications: { taskIds: [taskId] } });
    await client.comes("notifications/subscriptions/acknowledged");
    (await firstHeld(mounted)).release();
    const told = await moving(
      mounted.clock,
      client.comes("notifications/tasks", ({ params }) => params?.status === "completed"),
    );
    expect(told.params).toMatchObject({ taskId });
    await mounted.mount.close();
    expect((await listening.answer).result).toMatchObject({ resultType: "complete" });
  });

  test("a method that MCP does not have is refused", async () => {
    const { url, fetch } = await reach(await openMounted(), way);
    const refused = await fetch(url, { method: "PUT", headers: { "content-type": "application/json" }, body: "{}" });
    expect([refused.status, refused.headers.get("allow")]).toEqual([405, "GET, POST, DELETE"]);
  });

  test("a body of 4 MiB is read, and one of more is refused with the size", async () => {
    const { url, fetch } = await reach(await openMounted(), way);
    const padded = (bytes: number) => ({ ...init, body: init.body.padEnd(bytes) });
    expect((await fetch(url, padded(4 * 1024 * 1024))).status).toBe(200);
    const refused = await fetch(url, padded(4 * 1024 * 1024 + 1));
    expect(refused.status).toBe(413);
    expect(await refused.json()).toMatchObject({ error: { message: "The body is larger than 4 MiB." } });
  });

  test("strangers have no more than their share, and what was answered is not counted", async () => {
    const mounted = await openMounted();
    const { url, fetch } = await reach(mounted, way);
    const list = { ...init, body: init.body.replace("tools/call", "tools/list") };
    Object.assign(list, { headers: { ...init.headers, "mcp-method": "tools/list" } });
    const ask = async () => {
      const response = await fetch(url, list);
      return { status: response.status, text: await response.text() };
    };
    for (let n = 0; n < 210; n++) expect(await ask()).toMatchObject({ status: 200 });
    const stop = new AbortController();
    // Bodies that do not end.
    for (let n = 0; n < 210; n++) {
      const body = new ReadableStream({ start: (controller) => controller.enqueue(Buffer.from("{")) });
      fetch(url, { ...list, body, duplex: "half", signal: stop.signal }).catch(() => undefined);
    }
    const refused = { status: 429, text: expect.stringContaining("the most there may be") };
    await vi.waitFor(async () => expect(await ask()).toEqual(refused), guard);
    stop.abort();
    await vi.waitFor(async () => expect(await ask()).toMatchObject({ status: 200 }), guard);
  });

  test("closed: sessions and streams end, who waits is told, and so is who asks afterwards", async () => {
    const mounted = await openMounted();
    const reached = await reach(mounted, way);
    const legacy = await reached.connect("2025-11-25");
    const own = await legacy.openStream();
    const waiting = reached.fetch(reached.url, toCall("hold").init);
    const talking = await reached.connect("2026-07-28");
    const streaming = talking.startCall("hold", {}, { meta: { progressToken: "p" } });
    await vi.waitFor(() => expect(mounted.held).toHaveLength(2), guard);
    for (const { report } of mounted.held) report(1);
    await talking.comes("notifications/progress");
    await mounted.mount.close();
    await own.over;
    await expect(streaming.answer).rejects.toThrow();
    const closed = { jsonrpc: "2.0", id: null, error: { code: -32603, message: "This server was closed." } };
    for (const answer of [await waiting, await reached.fetch(reached.url, init)])
      expect([answer.status, await answer.json()]).toEqual([503, closed]);
    for (const { signal } of mounted.held) expect(signal.aborted).toBe(true);
    await mounted.mount.close();
  });
});

test("node: an app that answers by itself, because it took too long, is not answered for again", async () => {
  const mounted = await openMounted();
  const { url } = await serve(async (request, response) => {
    mounted.mount.node(request, response);
    const run = await firstHeld(mounted);
    response.writeHead(504).end("too late");
    run.release();
  });
  const response = await fetch(url, toCall("hold").init);
  expect([response.status, await response.text()]).toEqual([504, "too late"]);
});
