import { ResourceTemplate, McpServer as ServerV1 } from "@modelcontextprotocol/sdk/server/mcp.js";
import { type RequestId, SubscribeRequestSchema, UnsubscribeRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { expect, test, vi } from "vitest";
import { z } from "zod";
import type { Fields, Message, WireClient } from "../helpers/wire.ts";
import { doors, openWrapped } from "../helpers/wrapped.ts";

const text = (words: string) => ({ content: [{ type: "text" as const, text: words }] });
const timeout = { timeout: 50_000 };
const legacy = "2025-11-25";
const capabilities = { elicitation: {}, sampling: {} };

interface Made {
  readonly server: ServerV1;
  readonly subscribed: string[];
  /** Lets those go on that wait for each other. */
  readonly met: PromiseWithResolvers<void>;
}

/** One server whose tools ask, log and report, with the request at hand and without. */
function makeServer(by: "request" | "server" = "request"): Made {
  const server = new ServerV1(
    { name: "one", version: "1.0.0" },
    { capabilities: { logging: {}, resources: { subscribe: true } } },
  );
  const met = Promise.withResolvers<void>();
  let waiting = 0;
  const meet = async () => {
    waiting += 1;
    if (waiting === 2) met.resolve();
    await met.promise;
  };
  const inputSchema = { who: z.string() };
  const related = (relatedRequestId: RequestId) => (by === "request" ? { relatedRequestId } : {});
  const form = (who: string) => ({
    message: `Are you ${who}?`,
    requestedSchema: { type: "object" as const, properties: { name: { type: "string" as const } } },
  });
  server.registerTool("ask", { description: "Asks", inputSchema }, async ({ who }, { requestId }) => {
    await meet();
    const { content } = await server.server.elicitInput(form(who), related(requestId));
    return text(`${who} is ${String(content?.name)}`);
  });
  server.registerTool("sample", { description: "Asks the model", inputSchema }, async ({ who }, { requestId }) => {
    await meet();
    const messages = [{ role: "user" as const, content: { type: "text" as const, text: who } }];
    const { content } = await server.server.createMessage({ messages, maxTokens: 10 }, related(requestId));
    return text(`${who}: ${content.type === "text" ? content.text : ""}`);
  });
  const late: (() => void)[] = [];
  server.registerTool("tell", { description: "Logs and reports", inputSchema }, async ({ who }, extra) => {
    await meet();
    const log = { level: "error" as const, data: `log of ${who}` };
    await server.server.notification({ method: "notifications/message", params: log }, related(extra.requestId));
    const progressToken = extra._meta?.progressToken ?? "";
    const params = { progressToken, progress: 1, message: `progress of ${who}` };
    await server.server.notification({ method: "notifications/progress", params });
    // Said when the call is over, it is nobody's.
    const over = Promise.withResolvers<void>();
    late.push(over.resolve);
    void over.promise.then(() => server.sendLoggingMessage({ level: "error", data: `late log of ${who}` }));
    return text(`told ${who}`);
  });
  server.registerTool("hold", { description: "Is open for a while" }, async () => {
    for (const say of late) say();
    for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate);
    return text("held");
  });
  const subscribed: string[] = [];
  const note = (line: string) => {
    subscribed.push(line);
    return {};
  };
  server.server.setRequestHandler(SubscribeRequestSchema, ({ params }) => note(`+${params.uri}`));
  server.server.setRequestHandler(UnsubscribeRequestSchema, ({ params }) => note(`-${params.uri}`));
  server.registerResource("notes", new ResourceTemplate("notes://{name}", { list: undefined }), {}, (uri) => ({
    contents: [{ uri: uri.href, text: "any" }],
  }));
  return { server, subscribed, met };
}

/** Two sessions of one caller's; what strangers at one server are told is said elsewhere. */
const oneCaller = { identify: () => ({ kind: "app", id: "ada" }) as const };

/** Answers every question with the client's own name, and keeps what it was asked. */
function answerAs(client: WireClient, name: string): Message[] {
  const asked: Message[] = [];
  client.onMessage((message) => {
    if (message.method === undefined || message.id == null) return;
    asked.push(message);
    const content = { name };
    const result =
      message.method === "sampling/createMessage"
        ? { model: "m", role: "assistant", content: { type: "text", text: name } }
        : { action: "accept", content };
    void client.respond(message.id, result);
  });
  return asked;
}

const ways = [
  ["stdio", "one server, with the request", () => makeServer().server],
  ["http", "one server, with the request", () => makeServer().server],
  ["stdio", "a server each, without it", undefined],
  ["http", "a server each, without it", undefined],
] as const;

test.each(ways)(
  "two sessions that ask at once over %s (%s): each question reaches the client that called",
  async (door, _how, make) => {
    for (const tool of ["ask", "sample"]) {
      // Those of a server each do not meet.
      const own = () => {
        const { server, met } = makeServer("server");
        met.resolve();
        return server;
      };
      const { connect } = await openWrapped(make?.() ?? own);
      const [ann, bob] = [
        await connect(door, { revision: legacy, capabilities }),
        await connect(door, { revision: legacy, capabilities }),
      ];
      const asked = [answerAs(ann, "Ann"), answerAs(bob, "Bob")];
      const [first, second] = await Promise.all([ann.call(tool, { who: "ann" }), bob.call(tool, { who: "bob" })]);
      expect(first.content?.[0]?.text).toMatch(/^ann.*Ann$/);
      expect(second.content?.[0]?.text).toMatch(/^bob.*Bob$/);
      expect(asked.map((list) => list.length)).toEqual([1, 1]);
      expect(JSON.stringify(asked[0])).not.toContain("bob");
      expect(JSON.stringify(asked[1])).not.toContain("ann");
    }
  },
);

test("where it is not clear whom one server means, nobody is asked, and the tool is told what to do", async () => {
  const { connect } = await openWrapped(makeServer("server").server);
  const [ann, bob] = [
    await connect("http", { revision: legacy, capabilities }),
    await connect("http", { revision: legacy, capabilities }),
  ];
  const asked = [answerAs(ann, "Ann"), answerAs(bob, "Bob")];
  const answers = await Promise.all([ann.call("ask", { who: "ann" }), bob.call("ask", { who: "bob" })]);
  const refused = answers.filter(({ isError }) => isError === true);
  expect(refused.length).toBeGreaterThanOrEqual(1);
  expect(refused[0]?.content?.[0]?.text).toContain("makes a new server for each session");
  expect(JSON.stringify(asked[0])).not.toContain("bob");
  expect(JSON.stringify(asked[1])).not.toContain("ann");
});

test("clients of 2026-07-28 at the same server are asked what their own calls ask", async () => {
  const { connect } = await openWrapped(makeServer().server, oneCaller);
  const ask = async (who: string) => {
    const client = await connect("http", { revision: "2026-07-28", capabilities });
    const call = { name: "ask", arguments: { who } };
    const { inputRequests, requestState } = (await client.request("tools/call", call)).result as Fields;
    const [key = ""] = Object.keys(inputRequests);
    expect(inputRequests[key]).toMatchObject({ params: { message: `Are you ${who}?` } });
    const inputResponses = { [key]: { action: "accept", content: { name: who.toUpperCase() } } };
    return (await client.request("tools/call", { ...call, requestState, inputResponses })).result;
  };
  expect(await Promise.all([ask("ann"), ask("bob")])).toMatchObject([text("ann is ANN"), text("bob is BOB")]);
});

test.each(["stdio", "http"] as const)(
  "log lines and progress go to the session whose call they are of, and what comes late to nobody (%s)",
  async (door) => {
    const { connect } = await openWrapped(makeServer().server, oneCaller);
    const [ann, bob] = [await connect(door, { revision: legacy }), await connect(door, { revision: legacy })];
    for (const client of [ann, bob]) await client.request("logging/setLevel", { level: "debug" });
    await Promise.all([
      ann.call("tell", { who: "ann" }, { meta: { progressToken: "same" } }),
      bob.call("tell", { who: "bob" }, { meta: { progressToken: "same" } }),
    ]);
    // Bob alone is served while the late lines come.
    expect(await bob.call("hold")).toMatchObject(text("held"));
    const heard = (client: WireClient) =>
      client.received.filter(({ method }) => /message|progress/.test(method ?? "")).map(({ params }) => params);
    for (const [client, who] of [
      [ann, "ann"],
      [bob, "bob"],
    ] as const) {
      expect(heard(client)).toHaveLength(2);
      expect(heard(client)).toMatchObject([
        { data: `log of ${who}` },
        { progressToken: "same", message: `progress of ${who}` },
      ]);
    }
  },
);

test.each(["stdio", "http"] as const)(
  "each session hears of the resources that it has subscribed to (%s)",
  async (door) => {
    const { server, subscribed } = makeServer();
    const { connect } = await openWrapped(server);
    const [ann, bob] = [await connect(door, { revision: legacy }), await connect(door, { revision: legacy })];
    for (const client of [ann, bob]) if (door === "http") await client.openStream();
    for (const uri of ["notes://both", "notes://ann"]) await ann.request("resources/subscribe", { uri });
    await bob.request("resources/subscribe", { uri: "notes://both" });
    expect(subscribed).toEqual(["+notes://both", "+notes://ann"]);
    const changed = async (uri: string) => await server.server.sendResourceUpdated({ uri });
    const heard = (client: WireClient) =>
      client.received
        .filter(({ method }) => method === "notifications/resources/updated")
        .map(({ params }) => params?.uri);
    await changed("notes://ann");
    await changed("notes://both");
    await vi.waitFor(
      () => expect([heard(ann), heard(bob)]).toEqual([["notes://ann", "notes://both"], ["notes://both"]]),
      timeout,
    );
    await ann.request("resources/unsubscribe", { uri: "notes://both" });
    await bob.request("resources/unsubscribe", { uri: "notes://both" });
    expect(subscribed.at(-1)).toBe("-notes://both");
    expect(subscribed).toHaveLength(3);
  },
);

test.each(doors)(
  "tools that are added and removed later are announced, listed and called (%s, %s)",
  async (door, revision) => {
    const { server } = makeServer();
    const { connect } = await openWrapped(server);
    const client = await connect(door, { revision });
    const announced = () =>
      client.received.filter(({ method }) => method === "notifications/tools/list_changed").length;
    if (revision === "2026-07-28") {
      const listening = client.start("subscriptions/listen", { notifications: { toolsListChanged: true } });
      listening.answer.catch(() => undefined);
      await vi.waitFor(
        () => expect(client.received.map(({ method }) => method)).toContain("notifications/subscriptions/acknowledged"),
        timeout,
      );
    } else if (door === "http") await client.openStream();
    const names = async () =>
      ((await client.request("tools/list")).result as Fields).tools.map(({ name }: Fields) => String(name));
    expect(await names()).not.toContain("later");
    const later = server.registerTool("later", { description: "Came later" }, () => text("first"));
    await vi.waitFor(() => expect(announced()).toBeGreaterThanOrEqual(1), timeout);
    expect(await names()).toContain("later");
    expect(await client.call("later")).toMatchObject(text("first"));
    later.update({ callback: () => text("second") });
    expect(await client.call("later")).toMatchObject(text("second"));
    const before = announced();
    later.remove();
    await vi.waitFor(() => expect(announced()).toBeGreaterThan(before), timeout);
    expect(await names()).not.toContain("later");
    // In the words of the SDK that it is made with.
    expect(await client.call("later")).toMatchObject({
      isError: true,
      ...text("MCP error -32602: Tool later not found"),
    });
  },
);
