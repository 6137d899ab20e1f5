import { describe, expect, test } from "vitest";
import { retryAfterMs } from "../../src/client/http-request.ts";
import { cut, readMessage } from "../../src/client/message.ts";
import { headerValue, paramHeaders } from "../../src/client/param-headers.ts";
import { EventSplitter } from "../../src/client/sse.ts";
import { closest } from "../../src/client/tools.ts";

describe("a message is read", () => {
  test.each([
    ["not JSON"],
    ["[]"],
    ["1"],
    ["{}"],
    ['{"jsonrpc":"2.0","id":{}}'],
    ['{"jsonrpc":"2.0","method":1}'],
    ['{"jsonrpc":"2.0","method":"a","params":[]}'],
  ])("%s is none", (text) => {
    expect(readMessage(text)).toBeUndefined();
  });

  test("an answer that is nested too deep fails its request, and a notification is dropped", () => {
    const deep = `${"[".repeat(10_000)}${"]".repeat(10_000)}`;
    expect(readMessage(`{"jsonrpc":"2.0","id":3,"result":${deep}}`)).toMatchObject({ id: 3, error: { code: -32603 } });
    expect(readMessage(`{"jsonrpc":"2.0","method":"a","params":{"deep":${deep}}}`)).toBeUndefined();
  });
});

describe("a message of many values", () => {
  const answerOf = (count: number) => readMessage(`{"jsonrpc":"2.0","id":3,"result":{"rows":[${"[0],".repeat(count - 1)}[0]]}}`);

  test("is read: a result has no reason to be small", () => {
    expect(answerOf(200_000)).toMatchObject({ id: 3, result: { rows: { length: 200_000 } } });
  });

  test("of more than a million fails its request", () => {
    expect(answerOf(500_001)).toEqual({ id: 3, error: { code: -32603, message: "the answer holds more than 1,000,000 values" } });
  });
});

describe("a stream of events", () => {
  const events = (...chunks: (string | Buffer)[]) => {
    const splitter = new EventSplitter();
    return chunks.flatMap((chunk) => [...splitter.push(Buffer.from(chunk))]);
  };

  test("is cut at empty lines, whatever ends its lines", () => {
    for (const end of ["\n", "\r\n"]) {
      expect(events(`event: message${end}id: 7${end}data: {"a":1}${end}${end}data: b${end}${end}`).map(({ data, id }) => [data, id])).toEqual([
        ['{"a":1}', "7"],
        ["b", undefined],
      ]);
    }
  });

  test("may come byte by byte, in the middle of a letter too", () => {
    const bytes = Buffer.from("data: grüße\n\n");
    expect(events(...Array.from(bytes, (byte) => Buffer.from([byte]))).map(({ data }) => data)).toEqual(["grüße"]);
  });

  test("may hold comments, data on several lines, and how long to wait", () => {
    expect(events(": ping\n\nretry: 250\nid: 1\ndata:\n\ndata: a\ndata: b\n\n")).toEqual([
      { data: "", id: "1", retryMs: 250 },
      { data: "a\nb", id: undefined, retryMs: undefined },
    ]);
  });

  test("is given up when an event does not end", () => {
    const splitter = new EventSplitter();
    const pour = () => {
      for (let count = 0; count < 11; count++) for (const _ of splitter.push(Buffer.alloc(1024 * 1024, "x"))) expect.fail("it has not ended");
    };
    expect(pour).toThrow("larger than 10 MiB");
  });
});

describe("headers", () => {
  test.each([
    ["plain", "plain"],
    ["two words", "two words"],
    ["grüße", `=?base64?${Buffer.from("grüße").toString("base64")}?=`],
    [" edge ", `=?base64?${Buffer.from(" edge ").toString("base64")}?=`],
    ["a\r\nEvil: 1", `=?base64?${Buffer.from("a\r\nEvil: 1").toString("base64")}?=`],
    ["", "=?base64??="],
    ["=?base64?eA==?=", `=?base64?${Buffer.from("=?base64?eA==?=").toString("base64")}?=`],
  ])("%j is sent as %j", (text, expected) => {
    expect(headerValue(text)).toBe(expected);
  });

  test("arguments that a schema marks are sent as headers, too", () => {
    const schema = {
      properties: {
        region: { type: "string", "x-mcp-header": "Region" },
        deep: { properties: { dry: { type: "boolean", "x-mcp-header": "Dry" } } },
        count: { type: "integer", "x-mcp-header": "Count" },
        missing: { type: "string", "x-mcp-header": "Missing" },
        bad: { type: "string", "x-mcp-header": "a b" },
        list: { type: "array", "x-mcp-header": "List" },
      },
    };
    expect(paramHeaders(schema, { region: "eu", deep: { dry: true }, count: 3, bad: "x", list: [1] })).toEqual({
      "Mcp-Param-Region": "eu",
      "Mcp-Param-Dry": "true",
      "Mcp-Param-Count": "3",
    });
  });

  test("Retry-After is a number of seconds, or a date", () => {
    expect(retryAfterMs("3")).toBe(3000);
    expect(retryAfterMs("Thu, 01 Jan 1970 00:00:00 GMT")).toBe(0);
    expect(retryAfterMs("soon")).toBeUndefined();
    expect(retryAfterMs(undefined)).toBeUndefined();
  });
});

test("a server's words are cut to one line of sane length", () => {
  expect(cut(`a\n\n  b${"x".repeat(1000)}`)).toMatch(/^a bx{295}x?…$/);
  expect(cut("short")).toBe("short");
});

test.each([
  ["vault_idnex", "vault_index"],
  ["vaultindex", "vault_index"],
  ["ehco", "echo"],
  ["xyz", undefined],
])("for %s the nearest tool is %s", (name, expected) => {
  expect(closest(name, ["echo", "vault_index", "vault_status"])).toBe(expected);
});
