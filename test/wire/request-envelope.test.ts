import { describe, expect, test } from "vitest";
import { headerValue, paramHeaders } from "../../src/wire/request-envelope.ts";

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
});
