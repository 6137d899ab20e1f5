import { PassThrough } from "node:stream";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { createServer } from "@modelcontextprotocol/server-everything/dist/server/index.js";
import { expect, test } from "vitest";
import { cleanUp, shareAmongTests } from "../helpers/home.ts";
import { type Fields, overStreams, WireClient } from "../helpers/wire.ts";
import { openWrapped } from "../helpers/wrapped.ts";

/** server-everything, as it is and wrapped: what a client of 2025-11-25 gets is the same, byte for byte. */

const options = {
  revision: "2025-11-25",
  capabilities: { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} },
};

function makeServer() {
  const { server, cleanup } = createServer();
  cleanUp(async () => {
    cleanup(server.server.transport?.sessionId);
    await server.close();
  });
  return server;
}

async function openPlain(): Promise<WireClient> {
  const [input, output] = [new PassThrough(), new PassThrough()];
  await makeServer().connect(new StdioServerTransport(input, output));
  return await new WireClient(
    overStreams(input, output, async () => void input.end()),
    options,
  ).begin();
}

function answering(client: WireClient): WireClient {
  client.onMessage(({ id, method, params }) => {
    if (method === undefined || id == null) return;
    if (method === "roots/list") void client.respond(id, { roots: [{ uri: "file:///ann", name: "ann" }] });
    else if (method === "sampling/createMessage")
      void client.respond(id, { model: "m", role: "assistant", content: { type: "text", text: "sampled" } });
    else
      void client.respond(id, {
        action: "accept",
        ...(params?.mode !== "url" && { content: { name: "Ann", check: true } }),
      });
  });
  return client;
}

const open = shareAmongTests(async () => {
  const { connect } = await openWrapped(makeServer);
  return { plain: answering(await openPlain()), wrapped: answering(await connect("stdio", options)) };
});

/** What is made anew each time: times, ids, and how a session is called. */
const masked = (value: unknown) =>
  JSON.stringify(value)
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "<time>")
    .replaceAll(/\d{1,2}:\d\d:\d\d [AP]M/g, "<time>")
    .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, "<id>")
    .replaceAll(/session (<id>|undefined)/g, "session <one>");

async function same(method: string, params: Fields = {}): Promise<Fields> {
  const { plain, wrapped } = await open();
  const expected = await plain.request(method, params);
  const { result, error } = await wrapped.request(method, params);
  expect(masked({ result, error })).toBe(masked({ result: expected.result, error: expected.error }));
  return expected.result ?? {};
}

test("what is said of it at the handshake differs in tasks alone", async () => {
  const { plain, wrapped } = await open();
  const { capabilities: theirs, ...others } = plain.initialized;
  const { capabilities: ours, ...said } = wrapped.initialized;
  expect(said).toEqual(others);
  const { tasks: _theirs, ...rest } = theirs;
  const { tasks, ...own } = ours;
  expect(own).toEqual(rest);
  expect(tasks).toMatchObject({ cancel: {}, requests: { tools: { call: {} } } });
});

test("the tools are the same, but for how they can be tasks, what we say of them, and our own", async () => {
  const { plain, wrapped } = await open();
  const theirs = ((await plain.request("tools/list")).result as Fields).tools as Fields[];
  const listed = ((await wrapped.request("tools/list")).result as Fields).tools as Fields[];
  const ours = listed.filter(({ name }) => !String(name).startsWith("task_"));
  const bare = ({ execution: _execution, _meta, outputSchema, ...tool }: Fields) => {
    const { "meanwhile/tool": _said, ...meta } = _meta ?? {};
    // A handle may come in place of what the tool has promised.
    const promised = outputSchema?.anyOf?.[0] ?? outputSchema;
    return { ...tool, meta, promised: promised?.properties };
  };
  expect(ours.map(bare)).toEqual(theirs.map(bare));
  expect(listed.filter((tool) => !ours.includes(tool)).map(({ name }) => name)).toEqual([
    "task_result",
    "task_status",
    "task_cancel",
    "task_list",
    "task_answer",
  ]);
  expect(ours.every(({ execution }) => execution.taskSupport === "optional")).toBe(true);
});

test("prompts, resources, templates and completions are the same", async () => {
  const { prompts } = await same("prompts/list");
  for (const { name, arguments: given = [] } of prompts as Fields[]) {
    const known: Fields = {
      city: "Paris",
      state: "",
      department: "Engineering",
      name: "Alice",
      resourceType: "Text",
      resourceId: "1",
    };
    const args = Object.fromEntries((given as Fields[]).map((arg) => [arg.name, known[arg.name] ?? "1"]));
    await same("prompts/get", { name, arguments: args });
  }
  const { resources } = await same("resources/list");
  for (const { uri } of (resources as Fields[]).slice(0, 10)) await same("resources/read", { uri });
  await same("resources/templates/list");
  await same("resources/read", { uri: "demo://resource/dynamic/text/1" });
  await same("resources/read", { uri: "nothing://here" });
  await same("prompts/get", { name: "nothing" });
  for (const value of ["", "E", "x"])
    await same("completion/complete", {
      ref: { type: "ref/prompt", name: "completable-prompt" },
      argument: { name: "department", value },
    });
  await same("completion/complete", {
    ref: { type: "ref/resource", uri: "demo://resource/dynamic/text/{resourceId}" },
    argument: { name: "resourceId", value: "1" },
  });
});

const inputs: Readonly<Record<string, Fields>> = {
  echo: { message: "hello" },
  "get-annotated-message": { messageType: "error", includeImage: true },
  "get-env": {},
  "get-resource-links": { count: 2 },
  "get-resource-reference": { resourceType: "Text", resourceId: 1 },
  "get-roots-list": {},
  "get-structured-content": { location: "Chicago" },
  "get-sum": { a: 1, b: 2 },
  "get-tiny-image": {},
  "gzip-file-as-resource": { name: "a.gz", data: "data:text/plain,hello", outputType: "resource" },
  "toggle-simulated-logging": {},
  "toggle-subscriber-updates": {},
  "trigger-elicitation-request": {},
  "trigger-long-running-operation": { duration: 0.1, steps: 1 },
  "trigger-sampling-request": { prompt: "Say something", maxTokens: 10 },
  "trigger-url-elicitation": { url: "https://example.com", elicitationId: "x" },
};

test.each(Object.entries(inputs))("%s answers the same", async (name, input) => {
  await same("tools/call", { name, arguments: input });
});

test("every tool is among those; one that is a task alone answers plain calls only when it is wrapped", async () => {
  const { plain, wrapped } = await open();
  const { tools } = (await plain.request("tools/list")).result as Fields;
  const others = (tools as Fields[]).map(({ name }) => String(name)).filter((name) => !Object.hasOwn(inputs, name));
  expect(others).toEqual(["simulate-research-query"]);
  const call = { name: "simulate-research-query", arguments: { topic: "bees" } };
  expect((await plain.request("tools/call", call)).result).toMatchObject({ isError: true });
  const { result } = await wrapped.request("tools/call", call);
  expect(result).toMatchObject({ content: [{ text: expect.stringContaining("bees") }] });
});

test("wrong calls are refused in the same words", async () => {
  await same("tools/call", { name: "get-sum", arguments: { a: "x" } });
  await same("tools/call", { name: "nothing", arguments: {} });
  await same("tools/call", { name: "echo" });
});
