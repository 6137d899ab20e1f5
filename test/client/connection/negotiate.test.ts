import { describe, expect, onTestFinished, test } from "vitest";
import { connect } from "../../../src/client/index.ts";
import { ownProgram } from "../../helpers/programs.ts";
import { passTimeQuickly } from "../../helpers/quick-time.ts";
import { answer, discovered, legacy, modern, type Received, refuse, serveLoopback, text } from "../loopback.ts";
import { oddServer } from "../odd-server.ts";

passTimeQuickly();

describe("a server of earlier revisions, over stdio, that", () => {
  test.each([
    ["refuses", "answers an unknown method with an error", 1],
    ["noisy", "prints other things to its output, too", 1],
    ["ignores", "says nothing to an unknown method", 1],
    ["exits", "leaves at an unknown method", 2],
  ])("%s (%s) is spoken to all the same", async (way, _, starts) => {
    const server = oddServer(way);
    const client = await connect(server.target);
    expect(client.server).toMatchObject({ name: `odd-${way}`, revision: "2025-06-18", tasks: "none" });
    expect(await client.callTool("echo")).toMatchObject({ content: [{ text: "done" }] });
    await client.close();
    expect(server.starts()).toHaveLength(starts);
    expect(server.running()).toEqual([]);
    expect(server.methods().slice(0, 2)).toEqual(["server/discover", "initialize"]);
  });

  test("is asked for one revision only, is not asked for another", async () => {
    const server = oddServer("exits");
    const client = await connect(server.target, { revision: "2025-06-18" });
    await client.close();
    expect(server.methods()).toEqual(["initialize", "notifications/initialized"]);
    const pinned = oddServer("refuses");
    await expect(connect(pinned.target, { revision: "2025-11-25" })).rejects.toThrow(
      "wants to speak 2025-06-18, and we 2025-11-25",
    );
    await expect(connect(pinned.target, { revision: "2026-07-28" })).rejects.toThrow("-32600");
    await expect(connect(pinned.target, { revision: "1999" })).rejects.toThrow("The revision 1999 is not known");
    expect(pinned.running()).toEqual([]);
  });

  test("never says anything is given up in time, and ended", async () => {
    const server = oddServer("silent");
    await expect(connect(server.target, { timeoutMs: 500 })).rejects.toThrow("did not begin to talk within 0.5 s");
    expect(server.running()).toEqual([]);
  });

  test("wants a revision from the future is left", async () => {
    const server = oddServer("future");
    await expect(connect(server.target)).rejects.toThrow("wants to speak 2031-01-01");
    expect(server.running()).toEqual([]);
  });

  test("dies in the middle of a call is reported with what it printed", async () => {
    const server = oddServer("dies");
    const client = await connect(server.target);
    await expect(client.callTool("echo")).rejects.toThrow(
      /ended with exit code 9; it printed «Segmentation fault, more or less»\. Whether echo has run/,
    );
    await expect(client.listTools()).rejects.toThrow("exit code 9");
    await client.close();
    expect(server.starts()).toHaveLength(1);
  });

  test("sends a line without an end is left", async () => {
    const server = oddServer("huge");
    const client = await connect(server.target);
    await expect(client.callTool("echo")).rejects.toThrow("larger than 10 MiB");
    await client.close();
    expect(server.running()).toEqual([]);
  });

  test("answers in a labyrinth is told from one that says nothing", async () => {
    const client = await connect(oddServer("deep").target);
    await expect(client.callTool("echo")).rejects.toThrow("nested more than 200 levels deep");
    await client.close();
  });

  test("does not leave by itself is made to", async () => {
    const server = oddServer("stays");
    const client = await connect(server.target);
    const begun = performance.now();
    await client.close();
    expect(performance.now() - begun).toBeLessThan(5_000);
    expect(server.running()).toEqual([]);
  });
});

describe("a server that ends as it starts", () => {
  /** Prints these words and leaves: at once, or when it hears something. */
  function leaver(words: string, when: "at once" | "when asked") {
    let starts = 0;
    const [command, ...args] = ownProgram(({ stdin, stderr, exit }) => {
      starts += 1;
      const leave = () => stderr.write(words, () => exit(4));
      if (when === "at once") leave();
      else stdin.once("data", leave);
    });
    return { target: { command, args }, starts: () => starts };
  }

  test.each([
    ["with an error of its own", "Error: Cannot find module './config.js'\nNode.js v24\n", 1],
    ["for want of a setting", "API_KEY is missing\n", 1],
    ["with an error about what it was sent", "Error: unexpected message server/discover\n", 2],
    ["after a greeting", "My server is running on stdio\n", 2],
    ["without a word", "", 2],
  ])("%s", async (_, words, starts) => {
    const server = leaver(words, starts === 1 ? "at once" : "when asked");
    const said: string[] = [];
    const error = await connect(server.target, { onStderr: (text) => said.push(text) }).catch(
      (cause: unknown) => cause,
    );
    expect(error).toMatchObject({
      name: "ConnectionError",
      message: expect.stringContaining("ended with exit code 4"),
      lastWords: words,
    });
    expect(server.starts()).toBe(starts);
    expect(said.join("")).toBe(words.repeat(starts));
  });

  test("before it can be told anything is not waited for", async () => {
    const [command, ...args] = ownProgram(({ exit }) => exit(1));
    await expect(connect({ command, args }, { timeoutMs: 600_000 })).rejects.toThrow(
      /(ended with exit code 1|does not take)/,
    );
  });
});

test("a client that was closed leaves no listener in its program", async () => {
  // What an earlier test file has left may go at any time.
  const before = process.listeners("exit");
  const added = () => process.listeners("exit").filter((listener) => !before.includes(listener));
  const clients = await Promise.all([connect(oddServer("refuses").target), connect(oddServer("refuses").target)]);
  expect(added()).toHaveLength(1);
  for (const client of clients) await client.close();
  expect(added()).toEqual([]);
});

describe("over HTTP", () => {
  test.each([
    ["400 without a body", ({ response }: Received) => void response.writeHead(400).end()],
    [
      "400 with an error",
      (received: Received) =>
        refuse(received, 400, { code: -32000, message: "Bad Request: No valid session ID provided" }),
    ],
    [
      "404 and a page",
      ({ response }: Received) =>
        void response.writeHead(404, { "content-type": "text/html" }).end("<h1>Not found</h1>"),
    ],
    ["405", ({ response }: Received) => void response.writeHead(405).end()],
    ["500", ({ response }: Received) => void response.writeHead(500).end()],
    ["200 and an error", (received: Received) => refuse(received, 200, { code: -32601, message: "Method not found" })],
    [
      "no supported revision",
      (received: Received) => answer(received, { ...discovered, supportedVersions: ["2027-01-01"] }),
    ],
  ])("a server that meets server/discover with %s gets initialize", async (_, first) => {
    const server = legacy({}, first);
    const { url } = await serveLoopback(server.handle);
    const client = await connect({ url });
    expect(client.server).toMatchObject({ name: "sessions", revision: "2025-11-25", tasks: "2025-11-25" });
    await client.close();
    expect(server.seen).toEqual(["server/discover", "initialize", "notifications/initialized", "GET", "DELETE"]);
  });

  test("an address where nothing of ours answers is said to be one", async () => {
    const { url } = await serveLoopback(({ response }) => void response.writeHead(405).end());
    await expect(connect({ url })).rejects.toThrow(/HTTP status 405.*old HTTP\+SSE transport, which is not supported/);
  });

  test("a session that the server forgot is begun again, and the task goes on being followed", async () => {
    let looks = 0;
    const server = legacy({
      "tasks/get": (received) => {
        looks += 1;
        const session = received.request.headers["mcp-session-id"];
        if (session === "s1" && looks > 1) return refuse(received, 404, { code: -32001, message: "Session not found" });
        answer(received, { taskId: "t1", status: looks < 4 ? "working" : "completed", ttl: null, pollInterval: 20 });
      },
      "tasks/result": (received) => answer(received, text("done")),
    });
    const { url } = await serveLoopback(server.handle);
    const client = await connect({ url });
    onTestFinished(() => client.close());
    expect(await client.task("t1").result()).toMatchObject({ content: [{ text: "done" }] });
    expect(server.sessions()).toBe(2);
  });

  test("a stream that breaks before its answer is taken up where it broke", async () => {
    const resumed: unknown[] = [];
    const event = (id: string, message: object) =>
      `id: ${id}\nretry: 20\ndata: ${JSON.stringify({ jsonrpc: "2.0", ...message })}\n\n`;
    const progress = { method: "notifications/progress", params: { progressToken: "?", progress: 1 } };
    let call: number | undefined;
    const server = legacy({
      "tools/list": (received) => answer(received, { tools: [] }),
      "tools/call": ({ response, message }) => {
        call = message.id;
        response.writeHead(200, { "content-type": "text/event-stream" });
        response.end(event("7", progress));
      },
    });
    const { url } = await serveLoopback((received) => {
      const last = received.request.headers["last-event-id"];
      if (last === undefined) return server.handle(received);
      resumed.push(last);
      received.response.writeHead(200, { "content-type": "text/event-stream" });
      received.response.end(event("8", { id: call, result: text("after all") }));
    });
    const client = await connect({ url });
    onTestFinished(() => client.close());
    expect(await client.callTool("slow")).toMatchObject({ content: [{ text: "after all" }] });
    expect(resumed).toEqual(["7"]);
  });

  test("a stream that cannot be taken up again is an error, not a wait", async () => {
    const { url } = await serveLoopback(
      modern({
        "tools/call": ({ response }) =>
          void response.writeHead(200, { "content-type": "text/event-stream" }).end(": nothing\n\n"),
      }),
    );
    const client = await connect({ url });
    onTestFinished(() => client.close());
    await expect(client.callTool("slow")).rejects.toThrow(
      /closed the stream before it answered tools\/call.*Whether slow has run/,
    );
  });
});
