import { Readable } from "node:stream";
import { describe, expect, test } from "vitest";
import { isEventStream, readBody, subjectHeaders } from "../../src/wire/http-client.ts";

describe("the body of an answer", () => {
  const read = async (chunks: readonly string[], isStream: boolean, maxBytes?: number) => {
    const texts: string[] = [];
    for await (const { data } of readBody(Readable.from(chunks.map((chunk) => Buffer.from(chunk))), isStream, maxBytes))
      texts.push(data);
    return texts;
  };

  test("is one text, or the events of its stream", async () => {
    expect(await read(['{"a":', "1}"], false)).toEqual(['{"a":1}']);
    expect(await read(["data: on", "e\n\nda", "ta: two\n\n"], true)).toEqual(["one", "two"]);
    expect(await read([], false)).toEqual([]);
  });

  test("is left as soon as it is larger than what is read, be it one event or all", async () => {
    await expect(read(["xxxx", "xxxx"], false, 6)).rejects.toThrow("larger than 6 bytes");
    await expect(read(["data: xxx", "xxxxxxx"], true, 12)).rejects.toThrow("larger than 12 bytes");
    expect(await read(["data: x\n\n", "data: y\n\n", "data: z\n\n"], true, 12)).toEqual(["x", "y", "z"]);
  });

  test("is a stream by its type alone", () => {
    expect(
      [
        "text/event-stream",
        "Text/Event-Stream; charset=utf-8",
        "application/json",
        "text/event-streams",
        undefined,
        null,
      ].map(isEventStream),
    ).toEqual([true, true, false, false, false, false]);
  });
});

test.each([
  ["nothing is agreed on", { revision: undefined, session: undefined }, {}],
  ["a handshake", { revision: "2025-11-25", session: undefined, method: "initialize" }, {}],
  [
    "a session",
    { revision: "2025-11-25", session: "s", method: "ping" },
    { "mcp-session-id": "s", "mcp-protocol-version": "2025-11-25" },
  ],
  ["a session before the header", { revision: "2025-03-26", session: "s", method: "ping" }, { "mcp-session-id": "s" }],
  [
    "2026-07-28",
    { revision: "2026-07-28", session: undefined, method: "tools/call", params: { name: "echo" } },
    { "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "echo" },
  ],
  ["2026-07-28, an answer", { revision: "2026-07-28", session: undefined }, { "mcp-protocol-version": "2026-07-28" }],
])("headers: %s", (_, subject, headers) => {
  expect(subjectHeaders(subject)).toEqual(headers);
});
