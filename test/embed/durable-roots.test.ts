/** Servers that work in the roots of their client, as the official filesystem server does, behind `durable()`. */
import { AsyncResource } from "node:async_hooks";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { RootsListChangedNotificationSchema } from "@modelcontextprotocol/sdk/types.js";
import { expect, test } from "vitest";
import { waitFor } from "../helpers/meanwhile.ts";
import type { Fields, Message, WireClient } from "../helpers/wire.ts";
import { openWrapped } from "../helpers/wrapped.ts";

const text = (words: string) => ({ content: [{ type: "text" as const, text: words }] });
const legacy = "2025-11-25";
const modern = "2026-07-28";
const withRoots = { revision: legacy, capabilities: { roots: { listChanged: true }, elicitation: {} } };
const form = { type: "object" as const, properties: { word: { type: "string" as const } } };

interface Made {
  readonly server: McpServer;
  /** What the server learned about roots: the list, or the error. */
  readonly learned: string[];
}

/** A server that asks for the roots when it is initialized and when they have changed, and lists them by its tool. */
function makeServer(patience = { ms: 60_000 }): Made {
  const server = new McpServer({ name: "folders", version: "1.0.0" }, { capabilities: { logging: {} } });
  const learned: string[] = [];
  let folders: readonly string[] = ["the server's own"];
  const update = async () => {
    try {
      const { roots } = await server.server.listRoots({}, { timeout: patience.ms });
      folders = roots.map(({ uri }) => uri);
      learned.push(folders.join());
      await server.sendLoggingMessage({ level: "info", data: `${roots.length} roots` });
    } catch (error) {
      learned.push((error as Error).message);
    }
  };
  server.server.oninitialized = update;
  server.server.setNotificationHandler(RootsListChangedNotificationSchema, update);
  server.registerTool("folders", { description: "Lists its folders" }, () => text(folders.join()));
  return { server, learned };
}

/** Answers `roots/list` with what `roots` holds at that time. Returns the requests that the client got. */
function giveRoots(client: WireClient, roots: string[]): Message[] {
  return respondTo(client, () => ({ roots: roots.map((uri) => ({ uri })) }));
}

/** Answers the requests that the client got and gets. Returns them. */
function respondTo(client: WireClient, respond: () => Fields): Message[] {
  const asked: Message[] = [];
  const answer = (message: Message) => {
    if (message.method === undefined || message.id == null) return;
    asked.push(message);
    client.respond(message.id, respond()).catch(() => undefined);
  };
  for (const message of client.received) answer(message);
  client.onMessage(answer);
  return asked;
}

const foldersOf = async (client: WireClient) => (await client.call("folders")).content?.[0]?.text;
const hasFolders = (client: WireClient, folders: string) => waitFor(async () => (await foldersOf(client)) === folders);
const countOf = (asked: readonly Message[]) => asked.filter(({ method }) => method === "roots/list").length;

test("a shared server asks its only client for the roots at its start, and again after roots/list_changed", async () => {
  const { server, learned } = makeServer();
  const { connect } = await openWrapped(server);
  const client = await connect("stdio", withRoots);
  const roots = ["file:///one"];
  const asked = giveRoots(client, roots);
  await hasFolders(client, "file:///one");
  roots.push("file:///two");
  await client.notify("notifications/roots/list_changed");
  await hasFolders(client, "file:///one,file:///two");
  expect(countOf(asked)).toBe(2);
  expect(learned).toEqual(["file:///one", "file:///one,file:///two"]);
  await client.comes("notifications/message");
});

test("a shared server takes no roots of a client over HTTP, and asks that client everything else", async () => {
  const { server, learned } = makeServer();
  const { connect } = await openWrapped(server, { identify: () => ({ kind: "app", id: "ann" }) });
  const client = await connect("http", withRoots);
  await client.openStream();
  const asked = answerWith(client, "Ann");
  await waitFor(() => learned.length === 1);
  expect(learned[0]).toContain("A server that clients share works in the roots of the local user alone");
  await client.notify("notifications/roots/list_changed");
  await waitFor(() => learned.length === 2);
  expect(await foldersOf(client)).toBe("the server's own");
  expect(await server.server.elicitInput({ message: "Who?", requestedSchema: form })).toMatchObject({
    content: { word: "Ann" },
  });
  expect(asked.map(({ method }) => method)).toEqual(["elicitation/create"]);
});

test("a client that comes after the server has given up on its first question is asked all the same", async () => {
  const patience = { ms: 1 };
  const { server, learned } = makeServer(patience);
  const { connect, server: wrapped } = await openWrapped(server);
  await wrapped.ready();
  await waitFor(() => learned.length === 1);
  expect(learned[0]).toContain("timed out");
  patience.ms = 60_000;
  const client = await connect("stdio", withRoots);
  giveRoots(client, ["file:///late"]);
  await hasFolders(client, "file:///late");
});

test("a shared server gets one sentence where its only client has declared no roots, and keeps its own folders", async () => {
  const { server, learned } = makeServer();
  const { connect } = await openWrapped(server);
  const client = await connect("stdio", { revision: legacy, capabilities: {} });
  const asked = giveRoots(client, ["file:///never"]);
  await waitFor(() => learned.length === 1);
  expect(learned[0]).toContain("The client has not declared the capability `roots`, which roots/list needs.");
  expect(await foldersOf(client)).toBe("the server's own");
  expect(asked).toEqual([]);
});

test("a shared server asks neither of two clients; the one that stays is asked when the other leaves", async () => {
  const { server, learned } = makeServer();
  const { connect } = await openWrapped(server);
  const ann = await connect("stdio", withRoots);
  const ofAnn = giveRoots(ann, ["file:///ann"]);
  await hasFolders(ann, "file:///ann");
  const bob = await connect("stdio", withRoots);
  const ofBob = giveRoots(bob, ["file:///bob"]);
  await bob.notify("notifications/roots/list_changed");
  await expect(server.server.listRoots()).rejects.toThrow("Nobody is there to be asked, or it is not clear who");
  expect([countOf(ofAnn), countOf(ofBob)]).toEqual([1, 0]);
  await ann.close();
  await hasFolders(bob, "file:///bob");
  expect(countOf(ofBob)).toBe(1);
  expect(learned).toEqual(["file:///ann", "file:///bob"]);
});

/** A server whose tool asks outside of its own request, and whose other tool keeps a question for later. */
function makeAsker() {
  const server = new McpServer({ name: "asker", version: "1.0.0" });
  const ask = () => server.server.elicitInput({ message: "Who?", requestedSchema: form });
  const outside = new AsyncResource("outside of every request");
  const late: (() => Promise<unknown>)[] = [];
  server.registerTool("ask", { description: "Asks" }, async () => {
    const { content } = await outside.runInAsyncScope(ask);
    return text(`hello ${String(content?.word)}`);
  });
  server.registerTool("keep", { description: "Asks later" }, () => {
    late.push(AsyncResource.bind(ask));
    return text("kept");
  });
  return { server, late };
}

/** Answers every question with this word. */
function answerWith(client: WireClient, word: string): Message[] {
  return respondTo(client, () => ({ action: "accept", content: { word } }));
}

test("what the code of one caller's call asks after the call has ended reaches no other caller", async () => {
  const { server, late } = makeAsker();
  const identify = ({ headers }: { headers: Readonly<Record<string, string | undefined>> }) => ({
    kind: "app" as const,
    id: headers.authorization ?? "",
  });
  const { connect, reached } = await openWrapped(server, { identify });
  const ann = await connect("http", { ...withRoots, headers: { authorization: "ann" } });
  await ann.call("keep");
  await ann.request("ping");
  await fetch(reached.url, { method: "DELETE", headers: { ...ann.headersOf(), authorization: "ann" } });
  const bob = await connect("http", { ...withRoots, headers: { authorization: "bob" } });
  await bob.openStream();
  const asked = answerWith(bob, "Bob");
  await expect(late[0]?.()).rejects.toThrow("Nobody is there to be asked");
  expect(asked).toEqual([]);
  // Outside of every request it can only be meant for the one client there is.
  expect(await bob.call("ask")).toMatchObject(text("hello Bob"));
});

test("the advice of the error for two clients works as it is printed", async () => {
  const { server } = makeAsker();
  const { connect } = await openWrapped(server);
  const [ann, bob] = [await connect("stdio", withRoots), await connect("stdio", withRoots)];
  answerWith(ann, "Ann");
  answerWith(bob, "Bob");
  const advice = (await bob.call("ask")).content?.[0]?.text;
  expect(advice).toBe(
    "MCP error -32601: Nobody is there to be asked, or it is not clear who; pass `relatedRequestId`, or hand durable() a function that makes a new server for each session: durable(() => makeServer()).",
  );
  const apart = await openWrapped(() => makeAsker().server);
  const [cid, dora] = [await apart.connect("stdio", withRoots), await apart.connect("stdio", withRoots)];
  answerWith(cid, "Cid");
  answerWith(dora, "Dora");
  expect(await Promise.all([cid.call("ask"), dora.call("ask")])).toMatchObject([text("hello Cid"), text("hello Dora")]);
  const related = new McpServer({ name: "related", version: "1.0.0" });
  related.registerTool("ask", { description: "Asks" }, async ({ requestId: relatedRequestId }) => {
    const { content } = await related.server.elicitInput(
      { message: "Who?", requestedSchema: form },
      { relatedRequestId },
    );
    return text(`hello ${String(content?.word)}`);
  });
  const shared = await openWrapped(related);
  const [eve, fay] = [await shared.connect("stdio", withRoots), await shared.connect("stdio", withRoots)];
  answerWith(eve, "Eve");
  answerWith(fay, "Fay");
  expect(await Promise.all([eve.call("ask"), fay.call("ask")])).toMatchObject([text("hello Eve"), text("hello Fay")]);
});

test.each(["stdio", "http"] as const)(
  "a function that makes servers makes one for each session, and each works in the roots of its own (%s)",
  async (door) => {
    const made: Made[] = [];
    const { connect } = await openWrapped(() => {
      made.push(makeServer());
      return (made.at(-1) as Made).server;
    });
    const clients = [await connect(door, withRoots), await connect(door, withRoots)];
    for (const [at, client] of clients.entries()) {
      giveRoots(client, [`file:///${at}`]);
      if (door === "http") await client.openStream();
    }
    for (const [at, client] of clients.entries()) await hasFolders(client, `file:///${at}`);
    // The first was made to know the tools.
    expect(made.slice(1).map(({ learned }) => learned)).toEqual([["file:///0"], ["file:///1"]]);
    expect(made[0]?.learned[0]).toContain("was made only to list its tools");
  },
);

/** Calls `folders` as a client of 2026-07-28, and answers a `roots/list` that comes back. */
async function foldersOfModern(client: WireClient, folder: string): Promise<{ asked: number; folders: string }> {
  let more: Fields = {};
  for (let asked = 0; ; asked++) {
    const { result } = await client.request("tools/call", { name: "folders", arguments: {}, ...more });
    if (result?.resultType !== "input_required") return { asked, folders: result?.content[0].text };
    const [[key, question]] = Object.entries(result.inputRequests as Record<string, Message>) as [[string, Message]];
    expect(question.method).toBe("roots/list");
    more = { inputResponses: { [key]: { roots: [{ uri: folder }] } }, requestState: result.requestState };
  }
}

test.each([
  ["a shared server", () => makeServer()],
  ["a function that makes servers", undefined],
])(
  "%s that waits for roots waits no longer when the first call comes from a client without any",
  async (_how, makeOne) => {
    const made: Made[] = [];
    const makeNext = () => {
      made.push(makeServer());
      return (made.at(-1) as Made).server;
    };
    const shared = makeOne?.();
    const { server } = await openWrapped(shared?.server ?? makeNext);
    expect(await server.call("folders")).toMatchObject(text("the server's own"));
    const { server: inner, learned } = shared ?? (made.at(-1) as Made);
    await waitFor(() => learned.length === 1);
    expect(learned[0]).toContain("Nobody is there to be asked");
    await expect(inner.server.listRoots()).rejects.toThrow("Nobody is there to be asked");
  },
);

test("clients of 2026-07-28 over HTTP have a server for each caller, which asks each for its roots once", async () => {
  const made: Made[] = [];
  const makeOne = () => {
    made.push(makeServer());
    return (made.at(-1) as Made).server;
  };
  const { connect } = await openWrapped(makeOne, {
    identify: ({ headers }) => ({ kind: "app", id: headers.authorization ?? "" }),
  });
  const as = (name: string) =>
    connect("http", { revision: modern, capabilities: { roots: {} }, headers: { authorization: name } });
  const [ann, annAgain, bob] = [await as("ann"), await as("ann"), await as("bob")];
  expect(await foldersOfModern(ann, "file:///ann")).toEqual({ asked: 1, folders: "file:///ann" });
  expect(await foldersOfModern(annAgain, "file:///other")).toEqual({ asked: 0, folders: "file:///ann" });
  expect(await foldersOfModern(bob, "file:///bob")).toEqual({ asked: 1, folders: "file:///bob" });
  expect(made).toHaveLength(3);
});

test("clients of 2026-07-28 over stdio have a server for each connection, until it ends", async () => {
  const made: Made[] = [];
  const { connect } = await openWrapped(() => {
    made.push(makeServer());
    return (made.at(-1) as Made).server;
  });
  const options = { revision: modern, capabilities: { roots: {} } };
  const [ann, bob] = [await connect("stdio", options), await connect("stdio", options)];
  expect(await foldersOfModern(ann, "file:///ann")).toEqual({ asked: 1, folders: "file:///ann" });
  expect(await foldersOfModern(bob, "file:///bob")).toEqual({ asked: 1, folders: "file:///bob" });
  expect(await foldersOfModern(ann, "file:///ann")).toEqual({ asked: 0, folders: "file:///ann" });
  expect(made).toHaveLength(3);
  await ann.close();
  await waitFor(() => made.filter(({ server }) => server.isConnected()).length === 2);
});

test("a client of 2026-07-28 that comes after the server has given up on its first question is asked all the same", async () => {
  const patience = { ms: 1 };
  const { server, learned } = makeServer(patience);
  const { connect, server: wrapped } = await openWrapped(server);
  await wrapped.ready();
  await waitFor(() => learned.length === 1);
  patience.ms = 60_000;
  const client = await connect("stdio", { revision: modern, capabilities: { roots: {} } });
  expect(await foldersOfModern(client, "file:///late")).toEqual({ asked: 1, folders: "file:///late" });
});

test("a shared server asks the local client of 2026-07-28 with its first call, and callers over HTTP never", async () => {
  const { connect } = await openWrapped(makeServer().server);
  const capabilities = { roots: {} };
  const stranger = await connect("http", { revision: modern, capabilities });
  expect(await foldersOfModern(stranger, "file:///x")).toEqual({ asked: 0, folders: "the server's own" });
  const local = await connect("stdio", { revision: modern, capabilities });
  expect(await foldersOfModern(local, "file:///one")).toEqual({ asked: 1, folders: "file:///one" });
  expect(await foldersOfModern(local, "file:///two")).toEqual({ asked: 0, folders: "file:///one" });
});
