import { describe, expect, test } from "vitest";
import { answer as answerWell, refuse, serveLoopback } from "../client/loopback.ts";
import { runCli } from "../helpers/cli.ts";
import { wrapHere } from "../helpers/gateway-here.ts";
import { serveLines } from "../helpers/line-server.ts";
import { plainTool, scriptedUpstream } from "../helpers/scripted-upstream.ts";
import type { Result } from "../helpers/wire.ts";

/** What is wrong with an answer, and the words for it. */
const malformed: readonly (readonly [string, (id: number) => object, string])[] = [
  ["`error: null`", (id) => ({ jsonrpc: "2.0", id, error: null }), "its `error` is null"],
  [
    "`error: null` beside a result",
    (id) => ({ jsonrpc: "2.0", id, result: { content: [] }, error: null }),
    "its `error` is null",
  ],
  ["`error` as text", (id) => ({ jsonrpc: "2.0", id, error: "No disk" }), 'its `error` is no object: «"No disk"»'],
  [
    "an error code that is no number",
    (id) => ({ jsonrpc: "2.0", id, error: { code: "E_DISK", message: "No disk" } }),
    'the `code` of its error is no number: «"E_DISK"»',
  ],
  [
    "an error without a code",
    (id) => ({ jsonrpc: "2.0", id, error: { message: "No disk" } }),
    'the `code` of its error is no number: «"No disk"»',
  ],
  ["no `jsonrpc`", (id) => ({ id, result: { content: [] } }), 'it lacks `"jsonrpc": "2.0"`'],
  [
    "the ID as text",
    (id) => ({ jsonrpc: "2.0", id: String(id), result: { content: [] } }),
    'its `id` is the text "<id>" in place of the number <id>',
  ],
];
const withoutId = (text = "") => text.replaceAll(/(?<=`id` is the text "|place of the number )\d+/g, "<id>");
const failureOf = ({ isError, structuredContent }: Result) => [
  isError,
  withoutId(structuredContent?.messages[0]?.text),
];

describe("an answer of an upstream that is not valid JSON-RPC ends its call with a sentence", () => {
  test.each(malformed)("over stdio: %s", async (_title, say, flaw) => {
    const answer = ({ id, method, params }: { id: number; method: string; params: { name?: string } }) =>
      method === "tools/call" && params.name === "count" ? [say(id)] : undefined;
    const tools = () => ["count", "echo"].map((name) => ({ name, inputSchema: { type: "object" } }));
    const gateway = await wrapHere(scriptedUpstream({ tools, answer }));
    for (const revision of ["2025-11-25", "2026-07-28"]) {
      const client = await gateway.connect("stdio", { revision });
      const sentence = `The upstream theirs answered count with a message that is not valid JSON-RPC: ${flaw}.`;
      expect(failureOf(await client.call("count"))).toEqual([true, sentence]);
      expect((await client.call("echo")).content?.[0]?.text).toBe("echo is done");
    }
  });

  test.each(["application/json", "text/event-stream"])("over HTTP, as %s", async (type) => {
    const upstream = await serveLoopback((received) => {
      const { id = 0, method } = received.message;
      if (method === "initialize")
        return answerWell(received, {
          protocolVersion: "2025-11-25",
          capabilities: { tools: {} },
          serverInfo: { name: "by-hand", version: "1" },
        });
      if (method === "tools/list") return answerWell(received, { tools: [{ name: "count", inputSchema: {} }] });
      if (method !== "tools/call") return refuse(received, 400, { code: -32601, message: "Method not found" });
      const body = JSON.stringify({ jsonrpc: "2.0", id, error: "No disk" });
      received.response.setHeader("content-type", type);
      received.response.end(type === "application/json" ? body : `data: ${body}\n\n`);
    });
    const client = await (await wrapHere({ url: upstream.url })).connect("stdio", { revision: "2025-11-25" });
    expect(failureOf(await client.call("count"))).toEqual([
      true,
      'The upstream theirs answered count with a message that is not valid JSON-RPC: its `error` is no object: «"No disk"».',
    ]);
  });

  test("in prompts/get it becomes an error of the protocol", async () => {
    const prompts = { prompts: [{ name: "greet" }] };
    const upstream = scriptedUpstream({
      capabilities: { prompts: {} },
      answer: ({ id, method }) =>
        method === "prompts/list"
          ? [{ jsonrpc: "2.0", id, result: prompts }]
          : method === "prompts/get"
            ? [{ jsonrpc: "2.0", id, error: null }]
            : undefined,
    });
    const client = await (await wrapHere(upstream)).connect("stdio", { revision: "2025-11-25" });
    expect((await client.request("prompts/get", { name: "greet" })).error).toEqual({
      code: -32603,
      message:
        "The upstream theirs answered prompts/get with a message that is not valid JSON-RPC: its `error` is null.",
    });
  });

  test("in initialize it names the upstream that cannot be used", async () => {
    const upstream = scriptedUpstream({
      answer: ({ id, method }) => (method === "initialize" ? [{ jsonrpc: "2.0", id, error: "No config" }] : undefined),
    });
    const gateway = await wrapHere(upstream);
    await expect(gateway.connect("stdio", { revision: "2025-11-25" })).rejects.toThrow(
      /^The upstream theirs cannot be used\. The server answered initialize with a message that is not valid JSON-RPC: its `error` is no object: «"No config"»\.$/,
    );
  });
});

test("a result that is no object ends its call with a sentence, too", async () => {
  for (const result of [null, "done", [], undefined]) {
    const answer = ({ id, method }: { id: number; method: string }) =>
      method === "tools/call" ? [{ jsonrpc: "2.0", id, result }] : undefined;
    const client = await (await wrapHere(scriptedUpstream({ answer }))).connect("stdio", { revision: "2025-11-25" });
    expect(failureOf(await client.call("count"))).toEqual([
      true,
      "The upstream theirs answered count with a message that is not valid JSON-RPC: its `result` is no object.",
    ]);
  }
});

const flawed: readonly (readonly [unknown, string])[] = [
  ["hello", '"hello"'],
  [{ type: "text", text: "hello" }, '{"type":"text","text":"hello"}'],
  [null, "null"],
];

test.each(flawed)("and so does one whose `content` is no array, also of a task: %o", async (content, shown) => {
  const upstream = scriptedUpstream({
    capabilities: { tools: {}, tasks: { requests: { tools: { call: {} } } } },
    tools: () => [plainTool("count"), { ...plainTool("explore"), execution: { taskSupport: "required" } }],
    answer: ({ id, method, params }) => {
      if (method === "tools/call" && params.task !== undefined)
        return [{ jsonrpc: "2.0", id, result: { task: { taskId: "t1", status: "working" } } }];
      return ["tools/call", "tasks/result"].includes(method)
        ? [{ jsonrpc: "2.0", id, result: { content } }]
        : undefined;
    },
  });
  const gateway = await wrapHere(upstream);
  for (const revision of ["2025-11-25", "2026-07-28"]) {
    const client = await gateway.connect("stdio", { revision });
    for (const name of ["count", "explore"])
      expect(failureOf(await client.call(name))).toEqual([
        true,
        `The upstream theirs answered ${name} with a message that is not valid MCP: its \`content\` is no array: «${shown}».`,
      ]);
  }
});

test("a result without `content` is passed on", async () => {
  const answer = ({ id, method }: { id: number; method: string }) =>
    method === "tools/call" ? [{ jsonrpc: "2.0", id, result: { structuredContent: { pages: 3 } } }] : undefined;
  const client = await (await wrapHere(scriptedUpstream({ answer }))).connect("stdio", { revision: "2025-11-25" });
  expect((await client.call("count")).structuredContent).toEqual({ pages: 3 });
});

test("a line of a log that has an ID and an error is no answer", async () => {
  const upstream = scriptedUpstream({
    answer: ({ id, method }) =>
      method === "tools/call"
        ? [
            { level: 50, id, error: "No disk", msg: "It goes on." },
            { jsonrpc: "2.0", id, result: { content: [{ type: "text", text: "counted" }] } },
          ]
        : undefined,
  });
  const client = await (await wrapHere(upstream)).connect("stdio", { revision: "2025-11-25" });
  expect((await client.call("count")).content?.[0]?.text).toBe("counted");
});

/** A server for `meanwhile call` that answers every call so. */
async function callServer(say: (id: number) => object) {
  const hello = { protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo: { name: "s", version: "1" } };
  const server = await serveLines(({ id, method }) => {
    if (method === "initialize") return { result: hello };
    if (method === "tools/list") return { result: { tools: [{ name: "count", inputSchema: { type: "object" } }] } };
    return method === "tools/call" ? say(id as number) : { error: { code: -32601, message: "Method not found" } };
  });
  return (...words: string[]) => runCli(["call", server.target, "count", ...words]);
}

describe("meanwhile call", () => {
  test.each(malformed)("ends with a sentence after an answer with %s", async (_title, say, flaw) => {
    const call = await callServer((id) => ({ jsonrpc: undefined, ...say(id) }));
    const { code, stderr } = await call();
    const sentence = `The server answered tools/call with a message that is not valid JSON-RPC: ${flaw}.`;
    expect(withoutId(stderr)).toContain(sentence);
    expect(code).toBe(1);
  });

  test.each(flawed)("ends with a sentence after a result whose `content` is %o", async (content, shown) => {
    const call = await callServer(() => ({ result: { content } }));
    for (const words of [[], ["--json"]]) {
      const { code, stderr } = await call(...words);
      expect(stderr).toContain(
        `The server answered tools/call with a message that is not valid MCP: its \`content\` is no array: «${shown}».`,
      );
      expect(code).toBe(1);
    }
  });

  test.each([
    ["content: [null]", { content: [null] }, "", "[null is no content block]"],
    ["content with a text that is no block", { content: ["bare"] }, "", '["bare" is no content block]'],
    ["null before text", { content: [null, { type: "text", text: "Ho" }] }, "Ho\n", "[null is no content block]"],
  ])("shows %s", async (_title, result, data, told) => {
    const { code, stdout, stderr } = await (await callServer(() => ({ result })))();
    expect({ code, stdout }).toEqual({ code: 0, stdout: data });
    expect(stderr).toContain(told);
  });

  test("shows `content: [null]` of a failed call, and as JSON", async () => {
    const failed = await (await callServer(() => ({ result: { content: [null], isError: true } })))();
    expect([failed.code, failed.stderr]).toEqual([1, expect.stringContaining("The tool said no, and not why.")]);
    const { stdout } = await (await callServer(() => ({ result: { content: [null] } })))("--json");
    expect(JSON.parse(stdout)).toEqual({ content: [null] });
  });
});
