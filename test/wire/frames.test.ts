import { describe, expect, test } from "vitest";
import { parseMessage } from "../../src/wire/frames.ts";

describe("messages", () => {
  const parse = (text: string | Buffer) => () => parseMessage(Buffer.from(text));

  test.each([
    ['{"jsonrpc":"2.0","id":1,"method":"tools/list"}'],
    ['{"jsonrpc":"2.0","id":"a","method":"x","params":{}}'],
    ['{"jsonrpc":"2.0","method":"notifications/initialized"}'],
    ['{"jsonrpc":"2.0","id":1,"result":{}}'],
    [`{"jsonrpc":"2.0","id":"${"x".repeat(256)}","method":"x"}`],
    ['{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}'],
  ])("%s is one", (text) => {
    expect(parse(text)()).toEqual(JSON.parse(text));
  });

  test.each([
    ["nonsense", "parse", "The message is not JSON"],
    ["", "parse", "The message is not JSON"],
    [Buffer.from([0x22, 0xff, 0x22]), "parse", "not valid UTF-8"],
    ["[]", "request", "Batches are not supported"],
    ["7", "request", "must be a JSON object"],
    ['{"id":1,"method":"x"}', "request", '`jsonrpc` must be "2.0"'],
    ['{"jsonrpc":"2.0","id":null,"method":"x"}', "request", "`id` must be a text or a whole number"],
    ['{"jsonrpc":"2.0","id":1.5,"method":"x"}', "request", "`id` must be a text or a whole number"],
    ['{"jsonrpc":"2.0","id":1e400,"method":"x"}', "request", "`id` must be a text or a whole number"],
    ['{"jsonrpc":"2.0","id":9007199254740993,"method":"x"}', "request", "`id` must be a text or a whole number"],
    [
      `{"jsonrpc":"2.0","id":"${"x".repeat(257)}","method":"x"}`,
      "request",
      "`id` has 257 characters, and 256 are the most; use a shorter one, such as a number.",
    ],
    ['{"jsonrpc":"2.0","id":1}', "request", "`method` is missing"],
    ['{"jsonrpc":"2.0","id":1,"METHOD":"x"}', "request", "`method` is missing"],
    ['{"jsonrpc":"2.0","id":1,"method":7}', "request", "`method` must be a text"],
    ['{"jsonrpc":"2.0","id":1,"method":"x","params":[]}', "request", "`params` must be an object"],
    ["[".repeat(100_000), "request", "nested more than 64 levels deep"],
    [`{"a":${"[".repeat(64)}${"]".repeat(64)}}`, "request", "nested more than 64 levels deep"],
  ])("%.60s is none (%s)", (text, kind, sentence) => {
    expect(parse(text)).toThrow(expect.objectContaining({ kind, message: expect.stringContaining(sentence) }));
  });

  const members = (count: number) => `{${Array.from({ length: count }, (_, at) => `"k${at}":0`).join()}}`;
  const list = (count: number, item = "0") => `[${Array(count).fill(item).join()}]`;
  const request = (params: string) => `{"jsonrpc":"2.0","id":1,"method":"x","params":{${params}}}`;

  test.each([
    [
      "260,000 keys in _meta",
      request(`"_meta":${members(260_000)}`),
      "has an object with more than 10,000 members; put them in a list, or in a file.",
    ],
    [
      "260,000 keys in the arguments",
      request(`"arguments":${members(260_000)}`),
      "has an object with more than 10,000 members",
    ],
    [
      "260,000 keys deep inside",
      request(`"a":[{"b":[${members(260_000)}]}]`),
      "has an object with more than 10,000 members",
    ],
    ["260,000 keys of the message itself", members(260_000), "has an object with more than 10,000 members"],
    [
      "a list of 300,000",
      request(`"a":${list(300_000)}`),
      "holds more than 100,000 values; put them in a file, or send them in parts.",
    ],
    ["300,000 empty lists", request(`"a":${list(300_000, "[]")}`), "holds more than 100,000 values"],
    ["members of many objects", request(`"a":${list(200, members(600))}`), "holds more than 100,000 values"],
  ])("%s are refused before they are parsed", (_, text, sentence) => {
    expect(parse(text)).toThrow(
      expect.objectContaining({ kind: "request", message: expect.stringContaining(`The message ${sentence}`) }),
    );
  });

  test("what is within the limits is read: 10,000 members, 99,990 values, and commas and colons in strings", () => {
    const wide = request(`"a":${members(10_000)},"b":{"c":${members(10_000)}}`);
    const long = request(`"a":${list(99_990)}`);
    const text = request(`"a":"${",:{[".repeat(200_000)}"`);
    for (const each of [wide, long, text]) expect(parse(each)()).toEqual(JSON.parse(each));
  });

  test("brackets inside strings are no nesting", () => {
    expect(
      parse(`{"jsonrpc":"2.0","method":"x","params":{"a":"${"[".repeat(500)}\\"${"{".repeat(500)}"}}`),
    ).not.toThrow();
  });
});
