import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { type IncomingMessage, request } from "node:http";
import path from "node:path";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { systemClock } from "../../src/clock.ts";
import { runCli, type StartedCli, startCli } from "../helpers/cli.ts";
import { cleanUp, shareAmongTests, temporaryFolder, writeFiles } from "../helpers/home.ts";
import { waitFor } from "../helpers/wait-for.ts";

/** Commands that misbehave in one way each, and one that does not. */
const commands = {
  "commands/good/add.ts": `import { defineCommand } from "meanwhile";
import { z } from "zod";
export default defineCommand({ summary: "Add", input: z.object({ a: z.number(), b: z.number() }), output: z.object({ sum: z.number() }), effects: "read", run: ({ a, b }) => ({ sum: a + b }) });`,
  "commands/good/echo.ts": `import { defineCommand } from "meanwhile";
import { z } from "zod";
export default defineCommand({ summary: "Echo", input: z.object({ text: z.string() }), effects: "read", run: ({ text }) => ({ text }) });`,
  "commands/good/slow.ts": `import { existsSync } from "node:fs";
import path from "node:path";
import { setTimeout } from "node:timers/promises";
import { defineCommand } from "meanwhile";
const file = path.join(process.cwd(), "go");
export default defineCommand({ summary: "Wait for a file", effects: "read", run: async (_input, { signal }) => { while (!existsSync(file)) await setTimeout(5, undefined, { signal }); return { slow: true }; } });`,
  "commands/good/polluted.ts": `import { defineCommand } from "meanwhile";
export default defineCommand({ summary: "Look", effects: "read", run: () => ({ polluted: "polluted" in {} || "polluted" in [] || "polluted" in (() => 0) }) });`,
  "commands/bad/syntax.ts": "export default {;",
  "commands/bad/throws.ts": `import { defineCommand } from "meanwhile";
export default defineCommand({ summary: "Throws", run() { throw new Error("the disk is full"); } });`,
  "commands/bad/escapes.ts": `import { defineCommand } from "meanwhile";
export default defineCommand({ summary: "Throws in a timer", run: () => new Promise(() => setTimeout(() => { throw new Error("nobody caught me"); }, 1)) });`,
  "commands/bad/rejects.ts": `import { defineCommand } from "meanwhile";
export default defineCommand({ summary: "Forgets a rejection", run: () => { void Promise.reject(new Error("forgotten")); return new Promise(() => {}); } });`,
  "commands/bad/exits.ts": `import { defineCommand } from "meanwhile";
export default defineCommand({ summary: "Exits", run() { process.exit(3); } });`,
  "commands/bad/output.ts": `import { defineCommand } from "meanwhile";
import { z } from "zod";
export default defineCommand({ summary: "Breaks its promise", output: z.object({ pages: z.number() }), run: () => ({ pages: "many" }) as never });`,
  "commands/bad/prints.ts": `import { defineCommand } from "meanwhile";
export default defineCommand({ summary: "Prints", run() { console.log("printed by a command"); return { printed: true }; } });`,
  "commands/bad/endless.ts": `import { appendFileSync } from "node:fs";
import path from "node:path";
import { defineCommand } from "meanwhile";
const file = path.join(process.cwd(), "started");
export default defineCommand({ summary: "Never ends", run() { appendFileSync(file, "started\\n"); return new Promise(() => {}); } });`,
  // What never ends is not waited for.
  "meanwhile.config.json": JSON.stringify({ graceSeconds: 0 }),
};

const keys = `{${Array.from({ length: 260_000 }, (_, at) => `"k${at.toString(36)}":0`).join()}}`;
/** Small enough to be sent, and large enough to keep a careless reader busy for seconds. */
const tooWide = [`"_meta":${keys}`, `"arguments":${keys}`, `"arguments":{"text":[${"0,".repeat(300_000)}0]}`].map(
  (more) => `{"jsonrpc":"2.0","id":"wide","method":"tools/call","params":{"name":"good_echo",${more}}}`,
);

const project = () => writeFiles(temporaryFolder(), commands);

/** A timer fires after a hundredth of its time: a command that does not stop by itself is given up after 20 ms. */
function shortenTimers(): void {
  vi.spyOn(systemClock, "after").mockImplementation((ms, callback) => after(ms / 100, callback));
}
const after = systemClock.after.bind(systemClock);
const restoreTimers = () => void vi.restoreAllMocks();

/** How many runs of bad_endless have begun in a project. */
function startsIn(cwd: string): number {
  const file = path.join(cwd, "started");
  return existsSync(file) ? readFileSync(file, "utf8").split("\n").length - 1 : 0;
}

/** One MCP connection over the streams of `serve --in-process`, with messages written by hand. */
class Wire {
  readonly server: StartedCli;
  readonly cwd: string;
  #lastId = 0;
  #seen = 0;

  constructor(cwd: string) {
    this.cwd = cwd;
    this.server = startCli(["serve", "--in-process", "--no-bundled"], { cwd });
  }

  static async open(cwd = project()): Promise<Wire> {
    const wire = new Wire(cwd);
    const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "wire", version: "1" } };
    expect(await wire.request("initialize", params)).toHaveProperty("result.serverInfo.name", "meanwhile");
    wire.send({ jsonrpc: "2.0", method: "notifications/initialized" });
    return wire;
  }

  /** What came before is forgotten: it was another test's. */
  forget(): this {
    this.#seen = this.server.stdout().length;
    return this;
  }

  send(message: object | string | Buffer): void {
    const isRaw = typeof message === "string" || Buffer.isBuffer(message);
    this.server.stdin.write(isRaw ? message : JSON.stringify(message));
    this.server.stdin.write("\n");
  }

  messages(): { id?: unknown; error?: { code: number; message: string }; result?: unknown; method?: string }[] {
    return this.server
      .stdout()
      .slice(this.#seen)
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line));
  }

  async request(method: string, params?: object, id: number | string = ++this.#lastId) {
    this.send({ jsonrpc: "2.0", id, method, params });
    return await this.answer(id);
  }

  async answer(id: unknown, nth = 1) {
    return await waitFor(
      () => this.messages().filter((message) => message.id === id && message.method === undefined)[nth - 1],
      () => `no answer ${nth} to ${String(id)}: ${this.server.stdout()} ${this.server.stderr()}`,
    );
  }

  async call(name: string, args: object = {}) {
    const answer = (await this.request("tools/call", { name, arguments: args })) as {
      result?: ToolResult;
      error?: { code: number; message: string };
    };
    return answer;
  }

  /** The next call works. */
  async works(): Promise<void> {
    expect(await this.call("good_add", { a: 1, b: 2 })).toMatchObject({
      result: { structuredContent: { success: true, data: { sum: 3 } } },
    });
  }
}

interface ToolResult {
  isError?: boolean;
  content: { text: string }[];
  structuredContent: { success: boolean; data: unknown; messages: { type: string; text: string }[] };
}

const sentenceOf = (answer: { result?: ToolResult }) =>
  answer.result?.structuredContent.messages.findLast((message) => message.type === "error")?.text;

describe("over MCP", () => {
  /** One server for all that it outlives. */
  const server = shareAmongTests(async () => {
    cleanUp(restoreTimers);
    const wire = await Wire.open();
    cleanUp(shortenTimers);
    return wire;
  });
  const open = async () => (await server()).forget();

  test("an unknown tool: a protocol error that names the nearest one", async () => {
    const wire = await open();
    expect(await wire.call("good_ad")).toMatchObject({
      error: { code: -32602, message: 'Unknown tool "good_ad"; did you mean good_add?' },
    });
    expect(await wire.call("__proto__")).toMatchObject({ error: { code: -32602 } });
    await wire.works();
  });

  test("a missing or wrong argument: a tool error that names the field", async () => {
    const wire = await open();
    const missing = await wire.call("good_add", { a: 1 });
    expect(missing).toMatchObject({ result: { isError: true, structuredContent: { success: false, data: {} } } });
    expect(sentenceOf(missing)).toBe("Invalid argument for good_add: `b` is required.");
    expect(sentenceOf(await wire.call("good_add", { a: 1, b: "two" }))).toBe(
      "Invalid argument for good_add: `b`: Invalid input: expected number, received string.",
    );
    expect(sentenceOf(await wire.call("good_add", [1, 2]))).toMatch(/^Invalid argument/);
    await wire.works();
  });

  test("a command file that does not load: its tool says so by file and reason, the others work", async () => {
    const wire = await open();
    const answer = await wire.call("bad_syntax");
    expect(answer).toMatchObject({ result: { isError: true } });
    expect(sentenceOf(answer)).toMatch(/^bad_syntax could not be loaded from .*bad\/syntax\.ts: /);
    expect(wire.server.stderr()).toMatch(/command not loaded: .*bad\/syntax\.ts/);
    await wire.works();
  });

  test("a command that throws: its sentence and line for the model, the stack for the log", async () => {
    const wire = await open();
    const answer = await wire.call("bad_throws");
    expect(sentenceOf(answer)).toBe("the disk is full");
    expect(JSON.stringify(answer)).toContain("at commands/bad/throws.ts:2:65");
    expect(JSON.stringify(answer)).not.toContain(wire.cwd);
    await waitFor(() => wire.server.stderr().includes(path.join(wire.cwd, "commands/bad/throws.ts")));
    await wire.works();
  });

  test("a command whose error escapes it: that call fails, the server lives", async () => {
    const wire = await open();
    expect(sentenceOf(await wire.call("bad_escapes"))).toBe("nobody caught me");
    expect(sentenceOf(await wire.call("bad_rejects"))).toBe("forgotten");
    expect(sentenceOf(await wire.call("bad_exits"))).toBe(
      "bad_exits called process.exit(3), which would end the whole server; throw an error instead.",
    );
    await wire.works();
  });

  test("a command that returns what its output schema forbids: its own fault, said by field", async () => {
    const wire = await open();
    expect(sentenceOf(await wire.call("bad_output"))).toBe(
      "bad_output returned something that does not fit its own output schema: `pages`: Invalid input: expected number, received string",
    );
    await wire.works();
  });

  test("a command that writes to stdout: the protocol stays clean, the text goes to stderr", async () => {
    const wire = await open();
    expect(await wire.call("bad_prints")).toMatchObject({ result: { structuredContent: { data: { printed: true } } } });
    expect(wire.server.stdout()).not.toContain("printed by a command");
    await waitFor(() => wire.server.stderr().includes("printed by a command"));
    await wire.works();
  });

  test("a command that never ends: a cancel lets the caller go, and the server goes on", async () => {
    const wire = await open();
    const before = startsIn(wire.cwd);
    wire.send({ jsonrpc: "2.0", id: "endless", method: "tools/call", params: { name: "bad_endless" } });
    await waitFor(() => startsIn(wire.cwd) > before);
    await wire.works();
    wire.send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: "endless" } });
    await wire.works();
    expect(wire.messages().some((message) => message.id === "endless")).toBe(false);
  });

  test("a command that blocks the event loop: named in the log, with the cure", async () => {
    const wire = await open();
    const before = startsIn(wire.cwd);
    wire.send({ jsonrpc: "2.0", id: "blocks", method: "tools/call", params: { name: "bad_endless" } });
    await waitFor(() => startsIn(wire.cwd) > before);
    // The clock goes on by 2 s within one turn of the event loop, as if the command had blocked it.
    const monotonic = systemClock.monotonic.bind(systemClock);
    const spy = vi.spyOn(systemClock, "monotonic").mockImplementation(() => monotonic() + 2_000);
    onTestFinished(() => spy.mockRestore());
    await wire.server.says(
      /the event loop was blocked for [\d.]+ s while [^;]*bad_endless ran; isolation: \\"process\\"/,
    );
    wire.send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: "blocks" } });
    await wire.works();
  });

  test("a message that is not JSON: -32700, and the next line is read", async () => {
    const wire = await open();
    wire.send("this is not JSON");
    expect(await wire.answer(null)).toMatchObject({
      error: { code: -32700, message: expect.stringContaining("The message is not JSON") },
    });
    await wire.works();
  });

  test("a batch: -32600, and none of it is run", async () => {
    const wire = await open();
    wire.send([
      { jsonrpc: "2.0", id: "in-batch", method: "tools/call", params: { name: "good_add", arguments: { a: 1, b: 1 } } },
    ]);
    expect(await wire.answer(null)).toMatchObject({
      error: { code: -32600, message: "Batches are not supported; send one message at a time." },
    });
    await wire.works();
    expect(wire.messages().some((message) => message.id === "in-batch")).toBe(false);
  });

  test("an id twice in flight: the second is refused and cannot take the first one's answer", async () => {
    const wire = await open();
    wire.send({ jsonrpc: "2.0", id: "twice", method: "tools/call", params: { name: "good_slow" } });
    wire.send({
      jsonrpc: "2.0",
      id: "twice",
      method: "tools/call",
      params: { name: "good_add", arguments: { a: 1, b: 1 } },
    });
    expect(await wire.answer(null)).toMatchObject({
      error: { code: -32600, message: 'The id "twice" belongs to a call that is still running; use a fresh id.' },
    });
    writeFileSync(path.join(wire.cwd, "go"), "");
    expect(await wire.answer("twice")).toMatchObject({ result: { structuredContent: { data: { slow: true } } } });
    expect(wire.messages().filter((message) => message.id === "twice")).toHaveLength(1);
    expect(
      await wire.request("tools/call", { name: "good_add", arguments: { a: 2, b: 2 } }, "once-more"),
    ).toMatchObject({
      result: { structuredContent: { data: { sum: 4 } } },
    });
    await wire.works();
  });

  test("10 MiB + 1: refused while it arrives, and the next line is read", async () => {
    const wire = await open();
    wire.send(Buffer.alloc(10 * 1024 * 1024 + 1, "x"));
    expect(await wire.answer(null)).toMatchObject({
      error: { code: -32600, message: "The message is larger than 10 MiB." },
    });
    await wire.works();
  });

  test("depth 100,000: refused before it is parsed", async () => {
    const wire = await open();
    wire.send(
      `{"jsonrpc":"2.0","id":1000,"method":"tools/call","params":{"name":"good_echo","arguments":{"text":${"[".repeat(100_000)}${"]".repeat(100_000)}}}}`,
    );
    expect(await wire.answer(null)).toMatchObject({
      error: { code: -32600, message: "The message is nested more than 64 levels deep." },
    });
    await wire.works();
  });

  test("invalid UTF-8: -32700, never a silently changed letter", async () => {
    const wire = await open();
    wire.send(
      Buffer.concat([
        Buffer.from('{"jsonrpc":"2.0","id":2000,"method":"ping","params":{"x":"'),
        Buffer.from([0xc3, 0x28]),
        Buffer.from('"}}'),
      ]),
    );
    expect(await wire.answer(null)).toMatchObject({
      error: { code: -32700, message: "The message is not valid UTF-8." },
    });
    await wire.works();
  });

  test("U+2028 inside a string: an ordinary letter, there and back", async () => {
    const wire = await open();
    const text = "one\u2028two\u2029three\u0085four";
    expect(await wire.call("good_echo", { text })).toMatchObject({ result: { structuredContent: { data: { text } } } });
    expect(wire.messages()).toHaveLength(1);
    await wire.works();
  });

  test("a client that closes the pipe: the server ends by itself, without a stack trace", async () => {
    const wire = await Wire.open();
    wire.server.stdin.end();
    expect(await wire.server.exited).toBe(0);
    expect(wire.server.stderr()).not.toMatch(/EPIPE|at .*\.js/);
  });

  test("260,000 keys in _meta or in arguments, a list of 300,000: refused at once by the limit's name", async () => {
    const wire = await open();
    for (const [at, message] of tooWide.entries()) {
      wire.send(message);
      expect(await wire.answer(null, at + 1)).toMatchObject({
        error: { code: -32600, message: expect.stringMatching(/more than 10,000 members|more than 100,000 values/) },
      });
      await wire.works();
    }
  });

  test("arguments named like JavaScript's own insides, one to five levels deep, change nothing", async () => {
    const wire = await open();
    let evil = '{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}},"a":1,"b":2,"text":"x"}';
    for (let depth = 1; depth <= 5; depth++) {
      for (const name of ["good_add", "good_echo", "good_polluted"]) {
        wire.send(
          `{"jsonrpc":"2.0","id":"${name}-${depth}","method":"tools/call","params":{"name":"${name}","arguments":${evil},"_meta":${evil},"__proto__":${evil}}}`,
        );
        expect(await wire.answer(`${name}-${depth}`)).toBeDefined();
      }
      evil = `{"a":1,"b":2,"text":${evil},"__proto__":${evil},"constructor":{"prototype":${evil}}}`;
    }
    expect(await wire.call("good_polluted", {})).toMatchObject({
      result: { structuredContent: { data: { polluted: false } } },
    });
    await wire.works();
  });
});

describe("over HTTP", () => {
  const open = shareAmongTests(async () => {
    const cwd = project();
    cleanUp(restoreTimers);
    const server = startCli(["serve", "--http", "--port", "0", "--allow-anonymous", "--no-bundled"], { cwd });
    cleanUp(shortenTimers);
    return { cwd, url: await server.says(/http:\/\/127\.0\.0\.1:\d+\/mcp/), stderr: server.stderr };
  });
  const post = (url: string, body: string | Buffer, headers: Record<string, string> = {}) =>
    fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "application/json, text/event-stream", ...headers },
      body: body as never,
    });
  const call = (name: string, args: object) =>
    JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args } });

  test("each bad body gets its status and one sentence, and the next call works", async () => {
    const { url } = await open();
    const cases: [string | Buffer, number, number, string][] = [
      ["not JSON", 400, -32700, "The message is not JSON"],
      ["[]", 400, -32600, "Batches are not supported"],
      ["[".repeat(100_000), 400, -32600, "nested more than 64 levels"],
      [Buffer.from([0x22, 0xff, 0x22]), 400, -32700, "not valid UTF-8"],
      [`"${"x".repeat(4 * 1024 * 1024)}"`, 413, -32600, "The body is larger than 4 MiB."],
      ['{"jsonrpc":"2.0","id":null,"method":"ping"}', 400, -32600, "`id` must be a text or a whole number"],
    ];
    for (const [body, status, code, sentence] of cases) {
      const response = await post(url, body);
      expect(response.status).toBe(status);
      expect(await response.json()).toMatchObject({
        jsonrpc: "2.0",
        id: null,
        error: { code, message: expect.stringContaining(sentence) },
      });
    }
    expect(await (await post(url, call("good_add", { a: 1, b: 2 }))).text()).toContain('"sum":3');
  });

  test("a client that says megabytes about itself is refused in every revision, and gets no session", async () => {
    const { url } = await open();
    const clientInfo = { name: "x".repeat(3_000_000), version: "1" };
    const experimental = Object.fromEntries(Array.from({ length: 9_990 }, (_, at) => [`k${at}`, {}]));
    const initialize = (said: object) => ({
      method: "initialize",
      params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "x", version: "1" }, ...said },
    });
    const modern = {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientInfo": clientInfo,
      "io.modelcontextprotocol/clientCapabilities": {},
    };
    for (const message of [
      initialize({ clientInfo }),
      initialize({ capabilities: { experimental } }),
      { method: "tools/list", params: { _meta: modern } },
    ]) {
      const version =
        message.method === "tools/list"
          ? { "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/list" }
          : undefined;
      const response = await post(url, JSON.stringify({ jsonrpc: "2.0", id: 7, ...message }), version);
      expect([response.status, response.headers.get("mcp-session-id")]).toEqual([400, null]);
      expect(await response.json()).toMatchObject({
        id: 7,
        error: { code: -32602, message: expect.stringContaining("and 16384 are the most; say less.") },
      });
    }
    expect((await post(url, JSON.stringify({ jsonrpc: "2.0", id: 0, ...initialize({}) }))).status).toBe(200);
  });

  test("a method that MCP does not know is refused, and leaves no error in the log", async () => {
    const server = await open();
    const { hostname, port } = new URL(server.url);
    const statuses = [];
    for (const method of ["TRACE", "PUT", "PROPFIND"]) {
      const sent = request({
        hostname,
        port,
        path: "/mcp",
        method,
        headers: { "content-type": "application/json" },
      }).end();
      const [response] = (await once(sent, "response")) as [IncomingMessage];
      statuses.push([response.statusCode, response.headers.allow]);
      response.resume();
    }
    expect(statuses).toEqual(Array(3).fill([405, "GET, POST, DELETE"]));
    expect(server.stderr()).not.toContain("request failed");
  });

  test("a name of a megabyte that nobody knows is not sent back whole", async () => {
    const { url } = await open();
    const name = `a:${"b".repeat(1_000_000)}`;
    for (const message of [
      { method: "resources/read", params: { uri: name } },
      { method: "prompts/get", params: { name } },
      { method: "tools/call", params: { name } },
    ]) {
      const text = await (await post(url, JSON.stringify({ jsonrpc: "2.0", id: 1, ...message }))).text();
      expect(text).toContain("a:bbb");
      expect(text.length).toBeLessThan(1_000);
    }
  });

  test("messages of 260,000 keys do not hold up anybody else", async () => {
    const { url } = await open();
    const refused = [...tooWide, ...tooWide, ...tooWide].map(async (body) => (await post(url, body)).status);
    const others = Array.from({ length: 9 }, async () => (await post(url, call("good_add", { a: 1, b: 2 }))).text());
    const started = performance.now();
    for (const text of await Promise.all(others)) expect(text).toContain('"sum":3');
    // Before they were refused, each of the nine held up everybody for seconds.
    expect(performance.now() - started).toBeLessThan(20_000);
    expect(await Promise.all(refused)).toEqual(Array(9).fill(400));
  });

  test("an id twice in flight in one session: refused, and the first call keeps its answer", async () => {
    const { url, cwd } = await open();
    const begun = await post(
      url,
      JSON.stringify({
        jsonrpc: "2.0",
        id: 0,
        method: "initialize",
        params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "x", version: "1" } },
      }),
    );
    const session = { "mcp-session-id": begun.headers.get("mcp-session-id") as string };
    await begun.text();
    const first = post(
      url,
      JSON.stringify({ jsonrpc: "2.0", id: 7, method: "tools/call", params: { name: "good_slow" } }),
      session,
    );
    await first;
    const second = await post(url, call("good_add", { a: 1, b: 1 }).replace('"id":1', '"id":7'), session);
    expect(second.status).toBe(400);
    expect(await second.json()).toMatchObject({ id: null, error: { code: -32600 } });
    writeFileSync(path.join(cwd, "go"), "");
    expect(await (await first).text()).toContain('"slow":true');
  });

  test("a client that leaves in the middle of a call harms nobody", async () => {
    const { url, cwd } = await open();
    for (let round = 1; round <= 5; round++) {
      const leave = new AbortController();
      const gone = fetch(url, {
        method: "POST",
        headers: { "content-type": "application/json", accept: "application/json, text/event-stream" },
        body: call("bad_endless", {}),
        signal: leave.signal,
      });
      await waitFor(() => startsIn(cwd) === round);
      leave.abort();
      await gone.then((response) => response.text()).catch(() => {});
    }
    expect(await (await post(url, call("good_add", { a: 1, b: 2 }))).text()).toContain('"sum":3');
  });
});

describe("in the terminal", () => {
  test("an unknown command: what was meant, exit 2", async () => {
    const { code, stdout, stderr } = await runCli(["good", "ad"], { cwd: project() });
    expect({ code, stdout, stderr }).toEqual({
      code: 2,
      stdout: "",
      stderr: "✗ Unknown command `good ad`; did you mean `meanwhile good add`?\n",
    });
    expect(await runCli(["sevre"], { cwd: project() })).toMatchObject({
      code: 2,
      stderr: "✗ Unknown command `sevre`; did you mean `meanwhile serve`?\n",
    });
    expect(await runCli(["--nonsense"], { cwd: project() })).toMatchObject({
      code: 2,
      stderr: "✗ Unknown option --nonsense; meanwhile --help lists them.\n",
    });
  });

  test("a missing or wrong argument: the field, exit 2", async () => {
    const cwd = project();
    expect(await runCli(["good", "add", "1"], { cwd })).toMatchObject({
      code: 2,
      stdout: "",
      stderr: "✗ Invalid argument for good add: `b` is required.\n  See: meanwhile good add --help\n",
    });
    expect(await runCli(["good", "add", "1", "two"], { cwd })).toMatchObject({
      code: 2,
      stdout: "",
      stderr: expect.stringContaining("`b`: Invalid input: expected number, received string"),
    });
  });

  test("an unreadable --input: the file and the reason, exit 2", async () => {
    const cwd = project();
    writeFileSync(path.join(cwd, "list.json"), "[1,2]");
    writeFileSync(path.join(cwd, "broken.json"), "{");
    expect(await runCli(["good", "add", "--input", "none.json"], { cwd })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("✗ --input none.json cannot be used: ENOENT"),
    });
    expect(await runCli(["good", "add", "--input", "broken.json"], { cwd })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("✗ --input broken.json cannot be used: "),
    });
    expect(await runCli(["good", "add", "--input", "list.json"], { cwd })).toMatchObject({
      code: 2,
      stderr: "✗ --input list.json must hold one JSON object with the arguments.\n",
    });
    expect(
      await runCli(["good", "add", "--input", "-", "--json", "--quiet"], { cwd, input: '{"a":1,"b":2}' }),
    ).toMatchObject({
      code: 0,
      stdout: '{\n  "sum": 3\n}\n',
      stderr: "",
    });
  });

  test("a command file that does not load: file and reason, exit 1; `tools` lists the rest and names it", async () => {
    const cwd = project();
    expect(await runCli(["bad", "syntax"], { cwd })).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringMatching(/^✗ bad syntax could not be loaded from .*bad\/syntax\.ts: [^\n]+\n$/),
    });
    expect(await runCli(["tools"], { cwd })).toMatchObject({
      code: 1,
      stdout: expect.stringContaining("good_add"),
      stderr: expect.stringMatching(/^✗ bad_syntax is missing: .*bad\/syntax\.ts: [^\n]+\n$/),
    });
  });

  test("a command that throws, or breaks its promise: one sentence, exit 1", async () => {
    const cwd = project();
    expect(await runCli(["bad", "throws"], { cwd })).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringMatching(/^✗ the disk is full\n {2}at commands\/bad\/throws\.ts:\d+:\d+\n$/),
    });
    expect(await runCli(["bad", "escapes"], { cwd })).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringMatching(/^✗ nobody caught me\n {2}at commands\/bad\/escapes\.ts:\d+:\d+\n$/),
    });
    expect(await runCli(["bad", "exits"], { cwd })).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringContaining("called process.exit(3)"),
    });
    expect(await runCli(["bad", "output"], { cwd })).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringContaining("does not fit its own output schema"),
    });
  });

  test("a command that writes to stdout: stdout holds the data alone", async () => {
    const { stdout, stderr, code } = await runCli(["bad", "prints", "--json"], { cwd: project() });
    expect({ code, data: JSON.parse(stdout) }).toEqual({ code: 0, data: { printed: true } });
    expect(stderr).toContain("printed by a command");
  });

  test.each([
    ["ENOSPC", 70, "✗ The result could not be written: ENOSPC: write\n"],
    // `| head` has read enough.
    ["EPIPE", 0, ""],
  ] as const)("a result that cannot be written because of %s: exit %i", async (why, code, stderr) => {
    const run = startCli(["good", "echo", "hello", "--quiet"], { cwd: project() });
    run.breakStdout(why);
    expect([await run.exited, run.stdout(), run.stderr()]).toEqual([code, "", stderr]);
  });

  test("a command that never ends: Ctrl-C cancels it, exit 130", async () => {
    const cwd = project();
    const run = startCli(["bad", "endless"], { cwd });
    await waitFor(() => startsIn(cwd) === 1, run.stderr);
    shortenTimers();
    onTestFinished(restoreTimers);
    run.signal("SIGINT");
    expect(await run.exited).toBe(130);
    expect(run.stdout()).toBe("");
    expect(run.stderr()).toMatch(/✗ Cancelled\./);
  });
});
