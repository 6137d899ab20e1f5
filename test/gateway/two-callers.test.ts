import { randomUUID } from "node:crypto";
import { describe, expect, test, vi } from "vitest";
import type { UserIdentity } from "../../src/command/caller.ts";
import type { SeenRequest } from "../fixtures/gateway/http.mjs";
import { Gate } from "../helpers/gated.ts";
import { namesIn, serveGateway, textIn } from "../helpers/gateway.ts";
import { commandUpstream, httpUpstream } from "../helpers/upstreams.ts";
import { ModernClient, SessionClient, takesAll, type WireClient } from "../helpers/wire.ts";

const waiting = { timeout: 50_000 };
const eras = ["2025-11-25", "2026-07-28"] as const;

/** What a client carries that is for us and nobody else. */
const secretsOf = (name: string) => ({
  authorization: `Bearer token-of-${name}`,
  cookie: `session=cookie-of-${name}`,
  "x-api-key": `key-of-${name}`,
  "x-forwarded-for": `address-of-${name}`,
  traceparent: `00-${"1".repeat(32)}-${"2".repeat(16)}-01`,
});
const callerCalled = (subject: string): UserIdentity => ({ issuer: "https://i.example", client: "app", subject });
const headersOf = (name: string) => ({ ...secretsOf(name), "x-caller": JSON.stringify(callerCalled(name)) });

/** A signed-in caller's client at the gateway. */
async function connectAs(url: string, name: string, revision: string): Promise<WireClient> {
  const headers = headersOf(name);
  if (revision === "2026-07-28") return new ModernClient(url, { headers, capabilities: takesAll });
  const client = await SessionClient.begin(url, { headers, capabilities: { elicitation: {} } });
  await client.openStream();
  return client;
}

const sessionsIn = (seen: readonly SeenRequest[]) =>
  new Set(seen.flatMap(({ headers }) => headers["mcp-session-id"] ?? []));

describe.each(eras)("17: two callers of %s at one gateway over HTTP", (revision) => {
  test("no header of theirs reaches the upstream, no session of ours with it leaves it, and each has one of its own", async () => {
    const upstream = await httpUpstream();
    const headers = { Authorization: "Bearer ours", "X-Ours": "yes" };
    const { listen } = await serveGateway({ wrap: { upstreams: { up: { url: upstream.url, headers } } } });
    const url = await listen();
    const [ada, bob] = [await connectAs(url, "ada", revision), await connectAs(url, "bob", revision)];
    for (const [client, name] of [
      [ada, "ada"],
      [bob, "bob"],
    ] as const) {
      expect(await namesIn(client, "tools")).toContain("echo");
      expect(textIn(await client.call("echo", { text: name }))).toBe(name);
    }
    const { seen } = upstream;
    expect(seen.length).toBeGreaterThan(4);
    expect(new Set(seen.map((one) => one.headers.authorization))).toEqual(new Set(["Bearer ours"]));
    expect(new Set(seen.map((one) => one.headers["x-ours"]))).toEqual(new Set(["yes"]));
    const all = JSON.stringify(seen);
    expect(all).not.toMatch(/(token|cookie|key|address)-of-|x-caller|i\.example|2{16}/);
    const calls = seen.filter(({ message }) => message.method === "tools/call");
    const [first, second] = calls.map((one) => one.headers["mcp-session-id"]);
    expect(calls).toHaveLength(2);
    expect(first).not.toBe(second);
    expect(sessionsIn(seen).size).toBe(2);
    const own = ada.received.concat(bob.received);
    expect(JSON.stringify(own)).not.toMatch(new RegExp([...sessionsIn(seen), "Bearer ours"].join("|")));
  });

  test("nobody sees, asks for, answers or ends another's task or question", async () => {
    const gate = new Gate();
    const { listen } = await serveGateway({
      wrap: { upstreams: { up: { ...commandUpstream("gated", gate.env), long: ["unsafe"] } } },
    });
    const url = await listen();
    const [ada, bob] = [await connectAs(url, "ada", revision), await connectAs(url, "bob", revision)];
    const begun = await ada.call("unsafe", {}, revision === "2025-11-25" ? { task: {} } : {});
    const taskId = (begun.task?.taskId ?? begun.taskId) as string;
    expect(taskId).toEqual(expect.any(String));
    await gate.began(1);
    const asked = ada.startCall("ask", {}, { ...(revision === "2025-11-25" && { task: {} }) });
    asked.answer.catch(() => undefined);
    const unknown = randomUUID();
    const ways = ["tasks/get", "tasks/cancel", ...(revision === "2025-11-25" ? ["tasks/result"] : ["tasks/update"])];
    for (const method of ways) {
      const ask = async (id: string) => {
        const { error, result } = await bob.request(method, {
          taskId: id,
          ...(method === "tasks/update" && { inputResponses: {} }),
        });
        return JSON.stringify(error ?? result).replaceAll(id, "…");
      };
      expect([method, await ask(taskId)]).toEqual([method, await ask(unknown)]);
    }
    for (const tool of ["task_result", "task_status", "task_cancel"]) {
      const ask = async (id: string) =>
        JSON.stringify((await bob.call(tool, { job_id: id })).structuredContent?.messages[0]?.text).replaceAll(id, "…");
      expect([tool, await ask(taskId)]).toEqual([tool, await ask(unknown)]);
    }
    if (revision === "2025-11-25") expect((await bob.request("tasks/list")).result?.tasks).toEqual([]);
    expect(JSON.stringify(bob.received)).not.toContain("What is your name?");
    expect(bob.of("elicitation/create")).toEqual([]);
    // It is not the worse for it.
    expect((await ada.request("tasks/get", { taskId })).result).toMatchObject({ status: "working" });
    gate.open();
    await vi.waitFor(
      async () => expect((await ada.request("tasks/get", { taskId })).result?.status).toBe("completed"),
      waiting,
    );
    expect(gate.runs().unsafe).toBe(1);
  });
});

test("17: a session of one caller's does not exist for another, whoever has its name", async () => {
  const upstream = await httpUpstream();
  const { listen } = await serveGateway({ wrap: { upstreams: { up: { url: upstream.url } } } });
  const url = await listen();
  const initialize = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "x", version: "1" } };
  const send = (name: string, body: object, more: Record<string, string> = {}) =>
    fetch(url, {
      method: "POST",
      headers: {
        ...headersOf(name),
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        ...more,
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, ...body }),
    });
  const begun = await send("ada", { method: "initialize", params: initialize });
  await begun.text();
  const session = { "mcp-session-id": begun.headers.get("mcp-session-id") ?? "" };
  expect(sessionsIn(upstream.seen)).not.toContain(session["mcp-session-id"]);
  const list = { method: "tools/list" };
  expect((await send("ada", list, session)).status).toBe(200);
  expect((await send("bob", list, session)).status).toBe(404);
  expect((await send("bob", list, { "mcp-session-id": randomUUID() })).status).toBe(404);
});

test("17: what a server lists is said to be for its caller alone", async () => {
  const upstream = await httpUpstream();
  const { listen } = await serveGateway({ wrap: { upstreams: { up: { url: upstream.url } } } });
  const client = await connectAs(await listen(), "ada", "2026-07-28");
  expect((await client.request("tools/list")).result).toMatchObject({ cacheScope: "private" });
});

test("17: a redirect to another origin takes nothing of ours or of theirs there", async () => {
  const other = await httpUpstream();
  const upstream = await httpUpstream("redirect", { REDIRECT_TO: other.origin });
  const headers = { Authorization: "Bearer ours" };
  const { listen, logged } = await serveGateway({ wrap: { upstreams: { up: { url: upstream.url, headers } } } });
  const client = new ModernClient(await listen(), { headers: headersOf("ada"), capabilities: {} });
  const { error } = await client.request("tools/list");
  expect(error?.message).toBe("The upstream up cannot be used now.");
  const reason = /^The upstream up cannot be used\. .* redirects to another origin/;
  expect(logged).toEqual([expect.stringMatching(reason)]);
  expect(logged[0]).not.toContain("secret");
  expect(upstream.seen.length).toBeGreaterThan(0);
  expect(other.seen).toEqual([]);
});

test("18: nothing that a caller sends adds or changes a command, an address, a header or a variable", async () => {
  const other = await httpUpstream();
  const upstream = await httpUpstream();
  const headers = { Authorization: "Bearer ours" };
  const { listen, runtime } = await serveGateway({ wrap: { upstreams: { up: { url: upstream.url, headers } } } });
  const url = await listen();
  const client = await connectAs(url, "ada", "2025-11-25");
  const before = runtime.upstreams?.statuses().map(({ name, target }) => [name, target]);
  const theirs = { url: other.url, command: "touch", args: ["/tmp/x"], headers: { a: "b" }, env: { A: "b" } };
  const asked = { ...theirs, name: "up", upstreams: { up: theirs, more: theirs }, mcpServers: { more: theirs } };
  for (const method of ["upstreams/add", "upstreams/set", "upstreams/login", "config/set", "servers/add", "wrap"])
    expect([method, (await client.request(method, asked)).error?.code]).toEqual([method, -32601]);
  for (const route of ["/upstreams", "/upstreams/up", "/config", "/servers", "/mcp/upstreams", "/mcp?url=x"])
    for (const method of ["POST", "PUT", "PATCH", "DELETE"]) {
      const all = { ...headersOf("ada"), "content-type": "application/json" };
      const got = await fetch(new URL(route, url), { method, headers: all, body: JSON.stringify(asked) });
      expect([route, method, got.status >= 400 && got.status < 500]).toEqual([route, method, true]);
      await got.text();
    }
  const _meta = { ...asked, "meanwhile/upstream": theirs };
  expect(textIn(await client.call("echo", { text: "as ever", ...asked }, { meta: _meta }))).toBe("as ever");
  expect((await namesIn(client, "tools")).filter((name) => /config|upstream|wrap|login/.test(name))).toEqual([]);
  expect(runtime.upstreams?.statuses().map(({ name, target }) => [name, target])).toEqual(before);
  expect(other.seen).toEqual([]);
  expect(new Set(upstream.seen.map((one) => one.headers.authorization))).toEqual(new Set(["Bearer ours"]));
});

test("19: what an upstream says reaches a model as it is", async () => {
  const upstream = await httpUpstream();
  const { connect } = await serveGateway({ wrap: { upstreams: { up: { url: upstream.url } } } });
  const text = "\u001b[31mred\u001b]0;owned\u0007\u009b2J\u202edrow";
  for (const revision of eras) expect(textIn(await (await connect(revision)).call("echo", { text }))).toBe(text);
});
