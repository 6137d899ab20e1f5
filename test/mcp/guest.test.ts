import { type McpServer, ResourceTemplate } from "@modelcontextprotocol/server";
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { defineCommand } from "../../src/command/command.ts";
import { RuntimeError } from "../../src/errors.ts";
import { silentLog } from "../../src/log.ts";
import { Guests } from "../../src/mcp/guests.ts";
import { createHookHost } from "../../src/mcp/hook-host.ts";
import { toRpcError } from "../../src/mcp/router.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { moving, openInMemory, turns } from "../helpers/in-memory.ts";
import { waitFor } from "../helpers/meanwhile.ts";
import { type Fields, WireClient, type WireOptions } from "../helpers/wire.ts";

const text = (words: string) => ({ content: [{ type: "text" as const, text: words }] });
const hello = defineCommand({ summary: "Say hello", run: () => ({ hello: "ours" }) });

/** What an author registers, and what becomes of it. */
async function setUp(more: (server: McpServer, facts: { era: string }) => void = () => undefined) {
  const eras: string[] = [];
  const stopped: string[] = [];
  const hook = (server: McpServer, { era }: { era: string }) => {
    eras.push(era);
    server.registerTool(
      "by_hand",
      { description: "By hand", inputSchema: z.object({ word: z.string() }) },
      ({ word }) => text(`by hand: ${word}`),
    );
    server.registerTool("say_hello", { description: "Never reached", inputSchema: z.object({}) }, () =>
      text("the author's"),
    );
    server.registerTool("ask_name", { description: "Asks", inputSchema: z.object({}) }, async (_input, ctx) => {
      const answer = await ctx.mcpReq.elicitInput({
        mode: "form",
        message: "Name?",
        requestedSchema: { type: "object", properties: { name: { type: "string" } } },
      });
      return text(`hello ${String(answer.content?.name)}`);
    });
    server.registerTool(
      "slow",
      { description: "Waits to be stopped", inputSchema: z.object({ who: z.string() }) },
      async ({ who }, ctx) => {
        const { progressToken } = ctx.mcpReq._meta ?? {};
        if (progressToken !== undefined)
          await ctx.mcpReq.notify({
            method: "notifications/progress",
            params: { progressToken, progress: 1, message: who },
          });
        await new Promise((resolve) => ctx.mcpReq.signal.addEventListener("abort", resolve));
        stopped.push(who);
        return text("stopped");
      },
    );
    server.registerPrompt("say_hello", { description: "The author's" }, () => ({
      messages: [{ role: "user", content: { type: "text", text: "the author's" } }],
    }));
    server.registerResource("note", "notes://one", {}, (uri) => ({ contents: [{ uri: uri.href, text: "one" }] }));
    server.registerResource("notes", new ResourceTemplate("notes://{name}", { list: undefined }), {}, (uri) => ({
      contents: [{ uri: uri.href, text: "any" }],
    }));
    more(server, { era });
  };
  const clock = new FakeClock();
  const server = await openInMemory({ say_hello: hello }, clock, { mcp: hook });
  const clients: WireClient[] = [];
  onTestFinished(async () => {
    await moving(clock, Promise.all(clients.map((client) => client.close())));
    await moving(clock, server.close());
  });
  const connect = async (door: "stdio" | "http", options: WireOptions) => {
    const client = new WireClient(door === "stdio" ? server.openPipe() : await server.openHttp(), options);
    clients.push(client);
    return await client.begin();
  };
  return { connect, eras, stopped };
}

const doors = [
  ["stdio", "2025-11-25"],
  ["stdio", "2026-07-28"],
  ["http", "2025-11-25"],
  ["http", "2026-07-28"],
] as const;

const namesIn = (list: unknown) => (list as { name: string }[]).map(({ name }) => name);

test.each(doors)(
  "what an author registers by hand is listed and asked beside what is ours (%s, %s)",
  async (door, revision) => {
    const { connect } = await setUp();
    const client = await connect(door, { revision });
    const { tools } = (await client.request("tools/list")).result as Fields;
    expect(namesIn(tools).filter((name) => !name.startsWith("task_"))).toEqual(
      expect.arrayContaining(["say_hello", "by_hand", "ask_name", "slow"]),
    );
    expect((await client.call("say_hello")).structuredContent?.data, "a command wins over a tool of its name").toEqual({
      hello: "ours",
    });
    expect(await client.call("by_hand", { word: "x" })).toMatchObject(text("by hand: x"));
    expect((await client.request("tools/call", { name: "nothing", arguments: {} })).error).toMatchObject({
      code: -32602,
      message: expect.stringContaining("nothing"),
    });
    const { prompts } = (await client.request("prompts/list")).result as Fields;
    expect(namesIn(prompts)).toEqual(["say_hello"]);
    expect((await client.request("prompts/get", { name: "say_hello" })).result).toMatchObject({
      messages: [{ content: { text: "the author's" } }],
    });
    const { resources } = (await client.request("resources/list")).result as Fields;
    expect(namesIn(resources)).toEqual(["stats", "note"]);
    expect((await client.request("resources/templates/list")).result).toMatchObject({
      resourceTemplates: [{ name: "notes" }],
    });
    expect((await client.request("resources/read", { uri: "notes://two" })).result).toMatchObject({
      contents: [{ text: "any" }],
    });
    expect(
      (await client.request("resources/read", { uri: `x://${"y".repeat(10_000)}` })).error?.message.length,
      "what a client says is not sent back whole",
    ).toBeLessThan(400);
    expect((await client.request("no/such")).error).toMatchObject({ code: -32601 });
  },
);

test("the hook runs once for each session with a handshake, and once for all clients since 2026-07-28", async () => {
  const { connect, eras } = await setUp();
  for (const door of ["stdio", "http", "http"] as const)
    await (await connect(door, { revision: "2026-07-28" })).call("by_hand", { word: "x" });
  expect(eras).toEqual(["modern"]);
  for (const door of ["stdio", "http"] as const) {
    const client = await connect(door, { revision: "2025-11-25" });
    for (let n = 0; n < 3; n++) await client.call("by_hand", { word: "x" });
  }
  expect(eras).toEqual(["modern", "legacy", "legacy"]);
});

test.each(["stdio", "http"] as const)(
  "a tool of the author's asks the client that called it, and nobody else (%s)",
  async (door) => {
    const { connect } = await setUp();
    const [ada, bob] = await Promise.all(
      [1, 2].map(() => connect(door, { revision: "2025-11-25", capabilities: { elicitation: {} } })),
    );
    const asked = ada?.startCall("ask_name");
    const { id } = (await ada?.comes("elicitation/create")) ?? {};
    await ada?.respond(id, { action: "accept", content: { name: "Ada" } });
    expect((await asked?.answer)?.result).toMatchObject(text("hello Ada"));
    expect(bob?.of("elicitation/create")).toEqual([]);
  },
);

test.each(doors)(
  "progress goes to who asked for it, and who takes its call back stops that one alone (%s, %s)",
  async (door, revision) => {
    const { connect, stopped } = await setUp();
    const [ada, bob] = (await Promise.all([1, 2].map(() => connect(door, { revision })))) as [WireClient, WireClient];
    // The same id and the same token: they are told apart all the same.
    const calls = [ada, bob].map((client, at) =>
      client.startCall("slow", { who: ["ada", "bob"][at] }, { meta: { progressToken: "t" } }),
    );
    expect((await ada.comes("notifications/progress")).params).toMatchObject({ progressToken: "t", message: "ada" });
    expect((await bob.comes("notifications/progress")).params).toMatchObject({ progressToken: "t", message: "bob" });
    const takeBack = (client: WireClient, call: (typeof calls)[number] | undefined) =>
      door === "http" && revision === "2026-07-28" ? call?.drop() : client.cancel(call?.id as number);
    takeBack(ada, calls[0]);
    await waitFor(() => stopped.length > 0);
    expect(stopped).toEqual(["ada"]);
    takeBack(bob, calls[1]);
    await waitFor(() => stopped.length > 1);
  },
);

test.each(doors.filter(([, revision]) => revision === "2026-07-28"))(
  "what changes of the author's is told to who listens to it (%s, %s)",
  async (door, revision) => {
    let author: McpServer | undefined;
    const { connect } = await setUp((server) => {
      author = server;
      server.server.registerCapabilities({ resources: { subscribe: true } });
    });
    const client = await connect(door, { revision });
    const wanted = { toolsListChanged: true, resourcesListChanged: true, resourceSubscriptions: ["notes://one"] };
    const { drop } = client.start("subscriptions/listen", { notifications: wanted });
    expect((await client.comes("notifications/subscriptions/acknowledged")).params?.notifications).toEqual(wanted);
    author?.registerTool("new_one", { description: "New", inputSchema: z.object({}) }, () => text("new"));
    await client.comes("notifications/tools/list_changed");
    await author?.server.sendResourceUpdated({ uri: "notes://two" });
    await author?.server.sendResourceUpdated({ uri: "notes://one" });
    expect((await client.comes("notifications/resources/updated")).params).toMatchObject({ uri: "notes://one" });
    expect(await client.call("new_one")).toMatchObject(text("new"));
    drop();
  },
);

test("what an author's tool or resource gives is bounded as a command's result is: 10 MiB", async () => {
  const mib = (count: number) => "ä".repeat(count * 512 * 1024);
  const { connect } = await setUp((server) => {
    server.registerTool("large", { inputSchema: z.object({ mib: z.number() }) }, (given) => text(mib(given.mib)));
    server.registerResource("big", "notes://big", {}, (uri) => ({ contents: [{ uri: uri.href, text: mib(11) }] }));
  });
  const client = await connect("stdio", { revision: "2025-11-25" });
  expect((await client.call("large", { mib: 9 })).content?.[0]?.text).toBe(mib(9));
  expect(await client.call("large", { mib: 11 })).toEqual({
    ...text("large returned more than 10 MiB; write it to a file and return the path."),
    isError: true,
  });
  expect((await client.request("resources/read", { uri: "notes://big" })).error).toEqual({
    code: -32603,
    message: "The answer to resources/read is larger than 10 MiB.",
  });
  expect(await client.call("by_hand", { word: "still there" })).toMatchObject(text("by hand: still there"));
});

test("a client that looks who is there before it begins is served as what it is", async () => {
  const { connect, eras } = await setUp((server, { era }) => {
    server.registerTool("era", { description: "Which", inputSchema: z.object({}) }, () => text(era));
  });
  const client = await connect("stdio", { revision: "2026-07-28" });
  await client.request("server/discover");
  expect(await client.call("era")).toMatchObject(text("modern"));
  expect(eras).toEqual(["modern"]);
});

test.each(doors)(
  "a result that cannot be written is told to who asked for it, and the next call works (%s, %s)",
  async (door, revision) => {
    const { connect } = await setUp((server) => {
      server.registerTool("odd", { description: "Odd", inputSchema: z.object({}) }, () => ({
        ...text("odd"),
        _meta: { big: 1n },
      }));
    });
    const client = await connect(door, { revision });
    const odd = await client.call("odd");
    expect(odd).toMatchObject({ isError: true });
    expect(JSON.stringify(odd)).toContain("odd returned something that is not JSON");
    expect(await client.call("by_hand", { word: "x" })).toMatchObject(text("by hand: x"));
  },
);

test("a server that its author has closed is made anew for the next client", async () => {
  let author: McpServer | undefined;
  const { connect } = await setUp((server) => (author = server));
  const client = await connect("stdio", { revision: "2026-07-28" });
  expect(await client.call("by_hand", { word: "x" })).toMatchObject(text("by hand: x"));
  await author?.close();
  await turns();
  expect(await client.call("by_hand", { word: "y" })).toMatchObject(text("by hand: y"));
});

test("a hook whose SDK is not there says so, to the log and to whoever asks", async () => {
  const said: string[] = [];
  const loadSdk = () =>
    Promise.reject(new RuntimeError("CONFIG_INVALID", "in /a/file: install it", { forClients: "install it" }));
  const facts = { name: "x", version: "1", instructions: undefined };
  const log = { ...silentLog, error: (text: string) => void said.push(text) };
  const guests = new Guests({
    host: createHookHost({ name: "the hook", facts, hook: () => undefined, loadSdk, log }),
    log,
  });
  expect(toRpcError(await guests.shared("modern").catch((error: unknown) => error))).toEqual({
    code: -32603,
    message: "install it",
  });
  expect(said).toEqual(["in /a/file: install it"]);
});

test("a hook that fails is told to whoever asks, and tried again by the next", async () => {
  let runs = 0;
  const { connect } = await setUp(() => {
    runs += 1;
    // The first is at the start, to know what tools there are.
    if (runs <= 2) throw new Error("a secret of the author's");
  });
  const client = await connect("stdio", { revision: "2026-07-28" });
  const failed = await client.request("tools/list");
  expect(JSON.stringify(failed.error)).not.toContain("secret");
  expect(failed.error).toMatchObject({ code: -32603 });
  await turns();
  const next = await connect("stdio", { revision: "2026-07-28" });
  expect((await next.request("tools/list")).error).toBeUndefined();
});
