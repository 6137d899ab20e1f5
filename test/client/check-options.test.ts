import { describe, expect, onTestFinished, test } from "vitest";
import { type Client, connect, type Target, UsageError } from "../../src/client/index.ts";
import { callTool } from "../../src/testing/call-tool.ts";
import { answer, modern, serveLoopback, text } from "./loopback.ts";
import { oddServer } from "./odd-server.ts";

async function open(): Promise<Client> {
  const { url } = await serveLoopback(modern({ "tools/call": (received) => answer(received, text("done")) }));
  const client = await connect({ url });
  onTestFinished(() => client.close());
  return client;
}

describe("what a program gets wrong is told in a sentence, before anything is started", () => {
  test.each<[unknown, RegExp]>([
    [undefined, /^A target is \{ command, args \}, \{ url \} or \{ socket \}\.$/],
    [null, /^A target is/],
    ["node server.js", /^A target is/],
    [{}, /^A target is/],
    [{ command: "node", url: "http://127.0.0.1:1/mcp" }, /^A target is/],
    [{ command: "" }, /^A target's `command` must be a text that is not empty\.$/],
    [{ command: 5 }, /`command` must be a text/],
    [{ command: "a\0b" }, /`command` must be a text/],
    [{ socket: "" }, /`socket` must be a text/],
    [{ url: "" }, /`url` must be a text/],
    [{ url: new URL("http://127.0.0.1:1/mcp") }, /`url` must be a text/],
    [{ url: "http://127.0.0.1:1/mcp", headers: { "X-Count": 5 } }, /`headers` must be an object of texts/],
    [{ command: "node", args: "server.js" }, /`args` must be a list of texts/],
    [{ command: "node", args: [1] }, /`args` must be a list of texts/],
    [{ command: "node", env: { A: 1 } }, /`env` must be an object of texts/],
    [{ command: "node", cwd: 1 }, /`cwd` must be a text/],
  ])("connect(%j)", async (target, sentence) => {
    await expect(connect(target as Target)).rejects.toSatisfy(
      (error) => error instanceof UsageError && sentence.test(error.message),
    );
  });

  test.each([{ timeoutMs: -1 }, { timeoutMs: Number.NaN }, { timeoutMs: "5" as unknown as number }, { retryMs: -1 }])(
    "connect(…, %j)",
    async (options) => {
      await expect(connect({ command: "no-such-command-anywhere" }, options)).rejects.toThrow(
        `\`${Object.keys(options)[0]}\` must be a number of milliseconds, 0 or more.`,
      );
    },
  );

  test("callTool() and result()", async () => {
    const client = await open();
    await expect(client.callTool("echo", {}, { timeoutMs: -1 })).rejects.toThrow(UsageError);
    await expect(client.callTool("echo", {}, { ttlMs: Number.NaN })).rejects.toThrow(
      "`ttlMs` must be a number of milliseconds, 0 or more.",
    );
    await expect(client.callTool(undefined as unknown as string)).rejects.toThrow("Say which tool to call");
    await expect(client.callTool("echo", [] as never)).rejects.toThrow("A tool's arguments must be an object");
    await expect(client.task("t1").result({ pollIntervalMs: -1 })).rejects.toThrow(UsageError);
    expect(await client.callTool("echo", {}, { timeoutMs: Number.POSITIVE_INFINITY })).toMatchObject({
      content: [{ text: "done" }],
    });
  });

  test("callTool() of meanwhile/testing", async () => {
    for (const name of [undefined, "", 5])
      expect(await callTool(name as string)).toMatchObject({
        success: false,
        messages: [{ type: "error", text: expect.stringContaining("Say which tool to call") }],
      });
  });
});

test("a client is closed at the end of the block that uses it", async () => {
  const server = oddServer("refuses");
  {
    await using client = await connect(server.target);
    expect(client.server.name).toBe("odd-refuses");
    expect(server.running()).toHaveLength(1);
  }
  expect(server.running()).toEqual([]);
});

describe("who has given up", () => {
  test.each([
    ["before connecting", (stop: AbortController) => stop.abort(new Error("never mind"))],
    [
      "right after connecting has begun",
      (stop: AbortController) => queueMicrotask(() => stop.abort(new Error("never mind"))),
    ],
  ])("%s has no server started", async (_, give) => {
    const server = oddServer("refuses");
    const stop = new AbortController();
    give(stop);
    await expect(connect(server.target, { signal: stop.signal })).rejects.toThrow("never mind");
    expect(server.starts()).toEqual([]);
  });
});

describe("an answer that is no result", () => {
  test.each([["str"], [null], [[]], [5], [undefined]])("%j fails its call", async (result) => {
    const { url } = await serveLoopback(modern({ "tools/call": (received) => answer(received, result as never) }));
    const client = await connect({ url });
    onTestFinished(() => client.close());
    await expect(client.callTool("echo")).rejects.toThrow(
      "Asked for tools/call, the server answered with something that is no result.",
    );
  });
});
