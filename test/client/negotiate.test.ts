import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { connect } from "../../src/client/index.ts";
import { temporaryFolder } from "../helpers/home.ts";
import { answer, discovered, legacy, modern, type Received, refuse, serveLoopback, text } from "./loopback.ts";

const odd = path.resolve(import.meta.dirname, "../fixtures/client/odd.ts");

/** A server with one bad habit, and what it has noted. */
function oddServer(way: string) {
  const file = path.join(temporaryFolder(), "notes");
  const lines = () => readFileSync(file, "utf8").split("\n").slice(0, -1);
  return {
    target: { command: process.execPath, args: [odd, way, file] },
    methods: () => lines().filter((line) => !line.startsWith("started")),
    starts: () =>
      lines()
        .flatMap((line) => /^started (\d+)$/.exec(line)?.[1] ?? [])
        .map(Number),
  };
}

const isRunning = (pid: number) => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

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
    expect(server.starts().filter(isRunning)).toEqual([]);
    expect(server.methods().slice(0, 2)).toEqual(["server/discover", "initialize"]);
  });

  test("is asked for one revision only, is not asked for another", async () => {
    const server = oddServer("exits");
    const client = await connect(server.target, { revision: "2025-06-18" });
    await client.close();
    expect(server.methods()).toEqual(["initialize", "notifications/initialized"]);
    const pinned = oddServer("refuses");
    await expect(connect(pinned.target, { revision: "2025-11-25" })).rejects.toThrow("wants to speak 2025-06-18, and we 2025-11-25");
    await expect(connect(pinned.target, { revision: "2026-07-28" })).rejects.toThrow("-32600");
    await expect(connect(pinned.target, { revision: "1999" })).rejects.toThrow("The revision 1999 is not known");
    expect(pinned.starts().filter(isRunning)).toEqual([]);
  });

  test("never says anything is given up in time, and ended", async () => {
    const server = oddServer("silent");
    await expect(connect(server.target, { timeoutMs: 500 })).rejects.toThrow("did not begin to talk within 0.5 s");
    expect(server.starts().filter(isRunning)).toEqual([]);
  });

  test("wants a revision from the future is left", async () => {
    const server = oddServer("future");
    await expect(connect(server.target)).rejects.toThrow("wants to speak 2031-01-01");
    expect(server.starts().filter(isRunning)).toEqual([]);
  });

  test("dies in the middle of a call is mourned with its last words", async () => {
    const server = oddServer("dies");
    const client = await connect(server.target);
    await expect(client.callTool("echo")).rejects.toThrow(/ended with exit code 9; its last words: «Segmentation fault, more or less»\. Whether echo has run/);
    await expect(client.listTools()).rejects.toThrow("exit code 9");
    await client.close();
    expect(server.starts()).toHaveLength(1);
  });

  test("sends a line without an end is left", async () => {
    const server = oddServer("huge");
    const client = await connect(server.target);
    await expect(client.callTool("echo")).rejects.toThrow("larger than 10 MiB");
    await client.close();
    expect(server.starts().filter(isRunning)).toEqual([]);
  });

  test("answers in a labyrinth is told from one that says nothing", async () => {
    const client = await connect(oddServer("deep").target);
    await expect(client.callTool("echo")).rejects.toThrow("nested more than 200 levels deep");
    await client.close();
  });

  test("does not leave by itself is made to", async () => {
    const server = oddServer("stays");
    const client = await connect(server.target);
    await client.close();
    expect(server.starts().filter(isRunning)).toEqual([]);
  });

  test("cannot be started is named", async () => {
    await expect(connect({ command: "no-such-command-anywhere" })).rejects.toThrow(
      "The server no-such-command-anywhere cannot be started: there is no such command",
    );
  });
});

describe("over HTTP", () => {
  test.each([
    ["400 without a body", ({ response }: Received) => void response.writeHead(400).end()],
    ["400 with an error", (received: Received) => refuse(received, 400, { code: -32000, message: "Bad Request: No valid session ID provided" })],
    ["404 and a page", ({ response }: Received) => void response.writeHead(404, { "content-type": "text/html" }).end("<h1>Not found</h1>")],
    ["405", ({ response }: Received) => void response.writeHead(405).end()],
    ["500", ({ response }: Received) => void response.writeHead(500).end()],
    ["200 and an error", (received: Received) => refuse(received, 200, { code: -32601, message: "Method not found" })],
    ["no supported revision", (received: Received) => answer(received, { ...discovered, supportedVersions: ["2027-01-01"] })],
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
    const event = (id: string, message: object) => `id: ${id}\nretry: 20\ndata: ${JSON.stringify({ jsonrpc: "2.0", ...message })}\n\n`;
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
      modern({ "tools/call": ({ response }) => void response.writeHead(200, { "content-type": "text/event-stream" }).end(": nothing\n\n") }),
    );
    const client = await connect({ url });
    onTestFinished(() => client.close());
    await expect(client.callTool("slow")).rejects.toThrow(/closed the stream before it answered tools\/call.*Whether slow has run/);
  });
});
