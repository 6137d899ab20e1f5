import path from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { modernV2, newestV1, type Sdk, sdks, type TransportName } from "../helpers/clients.ts";
import { FakeClock, settled } from "../helpers/fake-clock.ts";
import { holdTimer } from "../helpers/hold-timer.ts";
import { shareAmongTests, temporaryFolder, writeFiles } from "../helpers/home.ts";
import { gate } from "../helpers/project.ts";
import { overPipes } from "../helpers/sdk-transport.ts";
import { openServer, type Pipes, placeOf, type TestServer } from "../helpers/server.ts";
import { waitFor } from "../helpers/wait-for.ts";
import { handleOf, type Json, type Message, resultOf, type WireClient, type WireOptions } from "../helpers/wire.ts";

const fixture = path.resolve(import.meta.dirname, "../fixtures/completion");
const ofFixture = path.join(fixture, "commands");
const transports: readonly TransportName[] = ["stdio", "HTTP"];
const legacyV2 = sdks.find(({ title }) => title.includes("legacy")) as Sdk;
const names = ["analyze_document", "notes_plain", "notes_write", "report_render", "trouble_complete"];

interface Prompt {
  readonly name: string;
  readonly description?: string;
  readonly arguments?: readonly { readonly name: string; readonly description?: string; readonly required?: boolean }[];
}

/** What the tests ask of an SDK's client. */
interface PromptClient {
  connect(transport: unknown): Promise<void>;
  close(): Promise<void>;
  getServerCapabilities(): Json | undefined;
  listPrompts(): Promise<{ prompts: readonly Prompt[] }>;
  getPrompt(params: object): Promise<{ description?: string; messages: readonly object[] }>;
  complete(params: object): Promise<{ completion: object }>;
  listen?(filter: object): Promise<unknown>;
  fallbackNotificationHandler?: (notification: { method: string }) => Promise<void>;
}

const prompt = (name: string) => ({ type: "ref/prompt", name });

/** One server with the commands of the fixture, for the tests that change nothing on it. */
const shared = shareAmongTests(() => openServer({ in: "http", commands: ofFixture }));
const revisions = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"] as const;
const pipe = shareAmongTests(async () => await (await shared()).client("2025-11-25", { over: "stdio" }));
/** The same for a project with prompts of its own. */
const ofAuthor = shareAmongTests(() => openServer({ in: "http", commands: ofFixture, cwd: fixture }));
const over = { stdio: "stdio", HTTP: "http" } as const;

describe.each([newestV1, legacyV2, modernV2])("$title", (sdk) => {
  test.each(transports)("finds the commands as prompts and completes their arguments, over %s", async (transport) => {
    const { client } = await connectSdk(sdk, transport, await shared());
    expect(client.getServerCapabilities()).toMatchObject({ completions: {}, prompts: { listChanged: true } });
    await listsPrompts(client);
    await getsPrompt(client);
    await completesArguments(client);
  });

  test.each(transports)("hears over %s that a command was added, and finds it among the prompts", async (transport) => {
    const cwd = writeFiles(temporaryFolder(), { "commands/other/ping.ts": pong });
    const server = await openServer({ in: placeOf[transport], commands: path.join(cwd, "commands"), cwd });
    const { client, heard, isListening } = await connectSdk(sdk, transport, server);
    if (sdk.revision >= "2026-07-28") await client.listen?.({ promptsListChanged: true });
    else await waitFor(isListening, () => "the client never opened its stream");
    expect((await client.listPrompts()).prompts.map(({ name }) => name)).toEqual(["other_ping"]);
    writeFiles(cwd, { "commands/hello/world.ts": pong });
    await waitFor(
      () => heard.includes("notifications/prompts/list_changed"),
      () => `the server never said that its prompts changed, only: ${heard.join(", ")}`,
    );
    expect((await client.listPrompts()).prompts.map(({ name }) => name)).toEqual(["hello_world", "other_ping"]);
  });
});

const pong = `import { defineCommand } from "meanwhile";
export default defineCommand({ summary: "Answer", run: () => "pong" });
`;

async function listsPrompts(client: PromptClient): Promise<void> {
  const { prompts } = await client.listPrompts();
  expect(prompts.map(({ name }) => name)).toEqual(names);
  expect(prompts.find(({ name }) => name === "report_render")).toEqual({
    name: "report_render",
    description: "Render a report",
    arguments: [
      { name: "kind", description: "Which report", required: true },
      { name: "template", description: "Which layout", required: true },
      ...["pages", "colour", "code", "tags"].map((name) => ({ name, required: false })),
    ],
  });
}

async function getsPrompt(client: PromptClient): Promise<void> {
  const given = { kind: "sales", template: "year", pages: "12", colour: "true", code: "007", tags: '["a","b"]' };
  const { description, messages } = await client.getPrompt({ name: "report_render", arguments: given });
  expect(description).toBe("Render a report");
  expect(messages).toEqual([{ role: "user", content: { type: "text", text: expect.any(String) } }]);
  const [head, ...rest] = (messages[0] as { content: { text: string } }).content.text.split("\n");
  expect(head).toBe("Use the tool report_render with these arguments:");
  expect(JSON.parse(rest.join("\n"))).toEqual({ ...given, pages: 12, colour: true, tags: ["a", "b"] });

  const bare = await client.getPrompt({ name: "analyze_document" });
  expect(bare.messages).toEqual([{ role: "user", content: { type: "text", text: "Use the tool analyze_document." } }]);

  const missing = client.getPrompt({ name: "report_render", arguments: { kind: "sales" } });
  await expect(missing).rejects.toMatchObject({
    code: -32602,
    message: expect.stringContaining("report_render needs `template`."),
  });
  await expect(client.getPrompt({ name: "report_nothing" })).rejects.toMatchObject({
    code: -32602,
    message: expect.stringContaining("report_nothing"),
  });
}

async function completesArguments(client: PromptClient): Promise<void> {
  const complete = async (name: string, value: string, given?: object) => {
    const params = {
      ref: prompt("report_render"),
      argument: { name, value },
      ...(given !== undefined && { context: { arguments: given } }),
    };
    return (await client.complete(params)).completion;
  };
  expect(await complete("kind", "")).toEqual({ values: ["sales", "staff"], total: 2, hasMore: false });
  expect(await complete("kind", "st")).toEqual({ values: ["staff"], total: 1, hasMore: false });
  expect(await complete("kind", "x")).toEqual({ values: [], total: 0, hasMore: false });
  // What is offered for one argument depends on another.
  expect(await complete("template", "")).toMatchObject({ values: ["quarter", "year", "team", "person"] });
  expect(await complete("template", "", { kind: "staff" })).toMatchObject({ values: ["team", "person"] });
  expect(await complete("template", "q", { kind: "sales" })).toMatchObject({ values: ["quarter"] });
  await expect(complete("template", "q", { kind: "staff" })).resolves.toMatchObject({ values: [] });
  await expect(complete("tempalte", "")).rejects.toMatchObject({
    code: -32602,
    message: expect.stringContaining("did you mean template?"),
  });
}

describe("a tool's arguments, in the form of our own", () => {
  test.each(transports)("are completed over %s, whichever revision the client speaks", async (transport) => {
    for (const revision of revisions.slice(2)) {
      const client = await (await shared()).client(revision, { over: over[transport] });
      const complete = async (params: Json) => completionOf(await client.request("completion/complete", params));
      // The example of the document that this form comes from. It lists all formats for a typed "pdf"; the prefix
      // decides here.
      const example = {
        name: "analyze_document",
        partial_argument: "pdf",
        arguments: { format: "pdf" },
        context: { previous_file: "document.pdf" },
      };
      expect(await complete(example), revision).toEqual({ values: ["pdf"], total: 1, hasMore: false });
      expect(await complete({ name: "analyze_document", argument: "format" })).toEqual({
        values: ["pdf", "docx", "txt"],
        total: 3,
        hasMore: false,
      });
      expect(await complete({ name: "analyze_document", partial_argument: "f" })).toEqual({
        values: ["format", "file"],
        total: 2,
        hasMore: false,
      });
      const known = {
        arguments: { format: "docx" },
        context: { previous_file: "document.pdf", same: "$.format", other: "notes.txt" },
      };
      expect(
        (await complete({ name: "analyze_document", argument: "file", partial_argument: "do", ...known })).values,
      ).toEqual(["document.pdf", "docx"]);
    }
  });

  test("of a tool that is not there are refused, with the name that was meant", async () => {
    const client = await pipe();
    const { error } = await client.request("completion/complete", { name: "analyse_document", partial_argument: "" });
    expect(error).toEqual({
      code: -32602,
      message: expect.stringMatching(/"analyse_document".*did you mean analyze_document\?/),
    });
    const { error: stranger } = await client.request("completion/complete", {
      name: "zzzzzzzzz",
      partial_argument: "",
    });
    expect(stranger).toEqual({ code: -32602, message: 'There is no tool "zzzzzzzzz".' });
  });

  test("are refused when a field is of the wrong type, by its name", async () => {
    const client = await pipe();
    for (const [field, value] of [
      ["partial_argument", 5],
      ["partial_argument", null],
      ["argument", { name: "format" }],
      ["arguments", ["pdf"]],
      ["arguments", null],
      ["context", "pdf"],
    ] as const) {
      const { error } = await client.request("completion/complete", { name: "analyze_document", [field]: value });
      expect(error, JSON.stringify({ [field]: value })).toEqual({
        code: -32602,
        message: expect.stringContaining(`\`${field}\` must be `),
      });
    }
  });

  // The server looks for commands and its own tools; the SDK has the schema of the others.
  test("are completed also when the tool was registered by hand", async () => {
    const client = await (await ofAuthor()).client("2025-11-25");
    const answer = await client.request("completion/complete", {
      name: "tool_by_hand",
      argument: "kind",
      partial_argument: "s",
    });
    expect(answer.result?.completion).toMatchObject({ values: ["square"] });
  });
});

describe("the id of a job", () => {
  /** Deferred after 0.3 s. */
  const config = { hosts: { "my-host": { limitSeconds: 0.4 } } };
  const plain: WireOptions = { revision: "2025-06-18", name: "my-host" };
  const idsFor = async (client: WireClient, partial = "") => {
    const asked = ["task_result", "task_status", "task_cancel"].map(async (name) => {
      const answer = await client.request("completion/complete", {
        name,
        argument: "job_id",
        partial_argument: partial,
      });
      return completionOf(answer).values;
    });
    const [first, ...others] = await Promise.all(asked);
    for (const other of others) expect(other).toEqual(first);
    return first;
  };

  test("is completed over every transport for the caller of the job, and never for anonymous callers", async () => {
    const clock = new FakeClock();
    const commands = path.resolve(import.meta.dirname, "../fixtures/deferral/commands");
    const server = await openServer({ in: "http", commands, config, clock });
    const [stdio, http, anonymous] = [
      await server.client(plain, { over: "stdio" }),
      await server.client(plain),
      await server.client(plain, { isAnonymous: true }),
    ];
    expect(await idsFor(stdio)).toEqual([]);
    const works = [gate(), gate(), gate()] as const;
    const own = handleOf(await settled(clock, stdio.call("work_gated", works[0].input))).job_id;
    const another = handleOf(await settled(clock, http.call("work_gated", works[1].input))).job_id;
    handleOf(await settled(clock, anonymous.call("work_gated", works[2].input)));

    for (const client of [stdio, http])
      expect([...((await idsFor(client)) ?? [])].sort()).toEqual([own, another].sort());
    // Ids have nothing in common but by chance; nearly all of one is only that one.
    expect(await idsFor(http, own.slice(0, -2))).toEqual([own]);
    expect(await idsFor(anonymous)).toEqual([]);
    expect(await idsFor(anonymous, own.slice(0, -2))).toEqual([]);
    for (const work of works) work.open();
  });
});

describe("a completion that fails", () => {
  test("is an error with its reason, after 5 s at the latest, and the server goes on", async () => {
    const client = await pipe();
    const endLimit = holdTimer(5_000);
    const complete = (argument: string) =>
      client.request("completion/complete", {
        ref: prompt("trouble_complete"),
        argument: { name: argument, value: "" },
      });
    const hanging = complete("hangs");
    for (const [argument, reason] of [
      ["throws", "the list of customers is not there"],
      ["rejects", "the list of orders is not there"],
      ["answers", "its completer must give a list of texts, or of { value, description }."],
    ] as const) {
      expect((await complete(argument)).error).toEqual(failed(argument, reason));
    }
    const asTool = await client.request("completion/complete", { name: "trouble_complete", argument: "throws" });
    expect(asTool.error).toEqual(failed("throws", "the list of customers is not there"));
    expect((await client.call("report_render", { kind: "sales", template: "year" })).structuredContent?.data).toEqual({
      file: "sales-year.pdf",
    });
    endLimit();
    expect((await hanging).error).toEqual(failed("hangs", "its completer took longer than 5000 ms."));
  });

  const failed = (argument: string, reason: string) => ({
    code: -32603,
    message: `Completing \`${argument}\` failed: ${reason}`,
    data: { error: "completion_failed", reason },
  });

  test("because of what was asked is the client's to mend", async () => {
    const client = await pipe();
    for (const [argument, reason] of [
      [{ name: "nothing", value: "" }, "there is no such argument; known: kind, template, pages, colour, code, tags"],
      [{ name: "kind", value: "s".repeat(1025) }, "what was typed is longer than 1024 bytes."],
    ] as const) {
      const { error } = await client.request("completion/complete", { ref: prompt("report_render"), argument });
      expect(error).toEqual({
        code: -32602,
        message: expect.stringContaining(reason),
        data: { error: "completion_failed", reason },
      });
    }
    for (const argument of [undefined, "kind", { name: "kind" }, { name: 5, value: "" }]) {
      const { error } = await client.request("completion/complete", { ref: prompt("report_render"), argument });
      expect(error).toEqual({ code: -32602, message: expect.stringContaining("must be a text") });
    }
    const { error: unknown } = await client.request("completion/complete", {
      ref: prompt("report_nothing"),
      argument: { name: "kind", value: "" },
    });
    expect(unknown).toMatchObject({ code: -32602 });
  });

  // What is in neither form is left to the SDK, which answers with -32603 and its schema's dump.
  test("because it is in no form at all is the client's to mend as well", async () => {
    const client = await pipe();
    for (const params of [
      {},
      { name: 5 },
      { ref: null },
      { ref: { type: "ref/tool", name: "report_render" }, argument: { name: "kind", value: "" } },
    ]) {
      expect((await client.request("completion/complete", params)).error).toMatchObject({ code: -32602 });
    }
  });

  // The tools that follow up a slow call are found by name, and nobody asks whether they are prompts.
  test("because the name is a tool's and no prompt's is the client's to mend as well", async () => {
    const client = await pipe();
    const answer = await client.request("completion/complete", {
      ref: prompt("task_result"),
      argument: { name: "job_id", value: "" },
    });
    expect(answer.error).toMatchObject({ code: -32602 });
  });
});

// The arguments are not looked at before they are used: null is a TypeError of ours, a text is taken for its letters.
test("arguments of a prompt that are no texts are refused", async () => {
  const client = await pipe();
  for (const given of [null, "text", ["text"], { format: 5 }]) {
    expect((await client.request("prompts/get", { name: "analyze_document", arguments: given })).error).toMatchObject({
      code: -32602,
    });
  }
});

describe("an author's prompt that is called like a command", () => {
  test.each(transports)(
    "wins over %s, and is completed by its own completer; the tool keeps its own",
    async (transport) => {
      const client = await (await ofAuthor()).client("2025-11-25", { over: over[transport] });
      const { prompts } = resultOf(await client.request("prompts/list")) as unknown as { prompts: readonly Prompt[] };
      expect(prompts.map(({ name }) => name).sort()).toEqual(names);
      expect(prompts.find(({ name }) => name === "report_render")).toMatchObject({
        description: "Written by hand",
        arguments: [{ name: "kind" }],
      });
      const got = resultOf(
        await client.request("prompts/get", { name: "report_render", arguments: { kind: "by-hand" } }),
      );
      expect(got.messages).toEqual([{ role: "user", content: { type: "text", text: "Render it by-hand." } }]);

      const ask = { ref: prompt("report_render"), argument: { name: "kind", value: "by-he" } };
      expect(completionOf(await client.request("completion/complete", ask)).values).toEqual(["by-heart"]);
      const asTool = { name: "report_render", argument: "kind", partial_argument: "s" };
      expect(completionOf(await client.request("completion/complete", asTool)).values).toEqual(["sales", "staff"]);
      const ours = { ref: prompt("analyze_document"), argument: { name: "format", value: "d" } };
      expect(completionOf(await client.request("completion/complete", ours)).values).toEqual(["docx"]);
    },
  );
});

describe("prompts: false", () => {
  const withoutPrompts = shareAmongTests(() =>
    openServer({ in: "http", commands: ofFixture, config: { prompts: false } }),
  );

  test.each(transports)(
    "takes the prompts and their capability away over %s; tools are completed all the same",
    async (transport) => {
      const client = await (await withoutPrompts()).client("2025-11-25", { over: over[transport] });
      const capabilities = client.received[0]?.result?.capabilities as Json;
      expect(capabilities).not.toHaveProperty("prompts");
      expect(capabilities).toMatchObject({ completions: {}, tools: {} });
      for (const method of ["prompts/list", "prompts/get"]) {
        expect((await client.request(method, { name: "report_render" })).error).toMatchObject({ code: -32601 });
      }
      const asTool = { name: "report_render", argument: "kind", partial_argument: "st" };
      expect(completionOf(await client.request("completion/complete", asTool)).values).toEqual(["staff"]);
    },
  );

  // A prompt that is not there has no arguments to complete.
  test("leaves no prompt to be completed", async () => {
    const client = await (await withoutPrompts()).client("2025-11-25");
    const answer = await client.request("completion/complete", {
      ref: prompt("report_render"),
      argument: { name: "kind", value: "" },
    });
    expect(answer.error).toMatchObject({ code: -32602 });
  });

  test("is not told of prompts when a command is added", async () => {
    const cwd = writeFiles(temporaryFolder(), { "commands/other/ping.ts": pong });
    const commands = path.join(cwd, "commands");
    const server = await openServer({ in: "memory", cwd, commands, config: { prompts: false } });
    const client = await server.client("2025-11-25");
    writeFiles(cwd, { "commands/hello/world.ts": pong });
    const of = (method: string) => client.received.filter((message) => message.method === method);
    await waitFor(
      () => of("notifications/tools/list_changed").length > 0,
      () => "the server never said that its tools changed",
    );
    await client.request("ping");
    expect(of("notifications/prompts/list_changed")).toEqual([]);
  });
});

describe("the capability", () => {
  test.each(transports)(
    "is declared over %s to the revisions that know it; the method answers them all",
    async (transport) => {
      for (const revision of revisions) {
        const client = await (await shared()).client(revision, { over: over[transport] });
        const declared = revision >= "2026-07-28" ? await client.request("server/discover") : client.received[0];
        const capabilities = declared?.result?.capabilities as Json;
        expect(Object.keys(capabilities), revision).toEqual(expect.arrayContaining(["tools", "prompts"]));
        expect(Object.hasOwn(capabilities, "completions"), revision).toBe(revision >= "2025-03-26");
        const ask = { ref: prompt("report_render"), argument: { name: "kind", value: "st" } };
        expect(completionOf(await client.request("completion/complete", ask)).values, revision).toEqual(["staff"]);
      }
    },
  );
});

test("600 completions of ^(a+)+$ with 30 characters: each is answered, and so is everything else in between", async () => {
  const client = await pipe();
  // JavaScript's RegExp needs seconds to find that the second one does not match.
  const partials = ["a".repeat(30), `${"a".repeat(29)}!`] as const;
  let left = 600;
  let inBetween = 0;
  const lane = async () => {
    while (left > 0) {
      const value = partials[left-- % 2] as string;
      const { values } = completionOf(
        await client.request("completion/complete", {
          ref: prompt("analyze_document"),
          argument: { name: "word", value },
        }),
      );
      if (value !== partials[0]) expect(values).toEqual([]);
      else
        expect(values.length > 0 && values.every((offered) => /^a{30,}$/.test(offered)), values.join(", ")).toBe(true);
    }
  };
  const others = async () => {
    while (left > 0) {
      resultOf(await client.request("ping"));
      const { structuredContent } = await client.call("analyze_document", { format: "txt" });
      expect(structuredContent?.data).toEqual({ format: "txt" });
      inBetween += 1;
    }
  };
  await Promise.all([...Array.from({ length: 16 }, lane), others()]);
  // Sixteen are under way at a time; whoever comes in between waits for some of those, and not for all 600.
  expect(inBetween).toBeGreaterThan(10);
});

describe("a reference in a call", () => {
  const metaOf = (context: unknown) => ({ meta: { "meanwhile/context": context } });

  test("stands for another argument, a place inside of one, or what the call's context has", async () => {
    const client = await pipe();
    for (const [input, context, author] of [
      [{ author: "$.user_id", user_id: "alice" }, undefined, "alice"],
      [{ author: "$.team.members[1]", team: { members: ["alice", "bob"] } }, undefined, "bob"],
      [{ author: "$.user_id" }, { user_id: "carol" }, "carol"],
      // The arguments come first.
      [{ author: "$.user_id", user_id: "alice" }, { user_id: "carol" }, "alice"],
    ] as const) {
      const result = await client.call("notes_write", { text: "hello", ...input }, metaOf(context));
      expect(result.structuredContent?.data, JSON.stringify(input)).toEqual({ author, text: "hello" });
    }
  });

  test("that leads nowhere, or is none, is an error that names the field", async () => {
    const client = await pipe();
    for (const [author, context, sentence] of [
      ["$.nobody", { somebody: "alice" }, "`author`: $.nobody is neither among the arguments nor in the context."],
      ["$.constructor.name", {}, "`author`: $.constructor.name is neither among the arguments nor in the context."],
      ["$.user_id", "no context", "`author`: $.user_id is neither among the arguments nor in the context."],
      ["$.a..b", {}, "`author`: $.a..b is no reference; write $.field or $.a.b[0]."],
      ["$.number", { number: 5 }, "`author`: Invalid input: expected string, received number."],
    ] as const) {
      const result = await client.call("notes_write", { author, text: "hello" }, metaOf(context));
      expect(result.isError, author).toBe(true);
      expect(result.structuredContent).toMatchObject({ success: false, data: {} });
      expect(result.content?.[0]?.text).toContain(sentence);
    }
    // One step is taken: two references to each other lead nowhere.
    const circle = await client.call("notes_write", { author: "$.text", text: "$.author" });
    expect(circle.content?.[0]?.text).toContain("`author`: $.text is neither among the arguments nor in the context.");
  });

  test("is a text like any other for a command that does not ask for references", async () => {
    const client = await pipe();
    const result = await client.call("notes_plain", { author: "$.user_id", user_id: "alice" });
    expect(result.structuredContent?.data).toEqual({ author: "$.user_id" });
  });
});

function completionOf(answer: Message): { values: string[]; total: number; hasMore: boolean } {
  return resultOf(answer).completion as { values: string[]; total: number; hasMore: boolean };
}

/** An SDK's own client. */
async function connectSdk(sdk: Sdk, transport: TransportName, server: TestServer) {
  const loaded = await sdk.load();
  const client = loaded.makeClient({ elicitation: false }) as unknown as PromptClient;
  const heard: string[] = [];
  let isListening = transport === "stdio";
  client.fallbackNotificationHandler = async ({ method }) => void heard.push(method);
  const watch: typeof fetch = async (input, init) => {
    const response = await fetch(input, init);
    if (init?.method === "GET" && response.ok) isListening = true;
    return response;
  };
  const target = await server.target({ over: over[transport] });
  const link =
    "url" in target
      ? loaded.makeHttp(new URL(target.url), { fetch: watch, requestInit: { headers: { ...target.headers } } })
      : overPipes((target as { readonly pipes: Pipes }).pipes);
  onTestFinished(() => client.close());
  await client.connect(link);
  return { client, heard, isListening: () => isListening };
}
