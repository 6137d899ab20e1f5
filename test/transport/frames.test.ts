import { describe, expect, test } from "vitest";
import { LineSplitter } from "../../src/lines.ts";
import { parseMessage } from "../../src/transport/frames.ts";

const split = (chunks: readonly (string | Buffer)[], max?: number) => {
  const splitter = new LineSplitter(max);
  return chunks.flatMap((chunk) => [...splitter.push(Buffer.from(chunk))].map((line) => line.toString()));
};

describe("lines", () => {
  test("end at a newline and nowhere else", () => {
    expect(split(['{"a":"x\u2028y\u2029z\u0085"}\n{"b":1}\r\n\n'])).toEqual(['{"a":"x\u2028y\u2029z\u0085"}', '{"b":1}']);
  });

  test("are put together from pieces, also when a letter is cut in two", () => {
    const bytes = Buffer.from('{"text":"Grüße"}\n{"n":2}\n');
    for (let at = 0; at <= bytes.length; at++) expect(split([bytes.subarray(0, at), bytes.subarray(at)])).toEqual(['{"text":"Grüße"}', '{"n":2}']);
  });

  test("one that is too long is dropped while it arrives, and the next is read", () => {
    expect(split(["x".repeat(6), "y".repeat(6), "z\nnext\n"], 10)).toEqual(["tooLong", "next"]);
    expect(split(["x".repeat(10), "\n"], 10)).toEqual(["x".repeat(10)]);
  });
});

describe("messages", () => {
  const parse = (text: string | Buffer) => () => parseMessage(Buffer.from(text));

  test.each([
    ['{"jsonrpc":"2.0","id":1,"method":"tools/list"}'],
    ['{"jsonrpc":"2.0","id":"a","method":"x","params":{}}'],
    ['{"jsonrpc":"2.0","method":"notifications/initialized"}'],
    ['{"jsonrpc":"2.0","id":1,"result":{}}'],
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
    ['{"jsonrpc":"2.0","id":1}', "request", "`method` is missing"],
    ['{"jsonrpc":"2.0","id":1,"METHOD":"x"}', "request", "`method` is missing"],
    ['{"jsonrpc":"2.0","id":1,"method":7}', "request", "`method` must be a text"],
    ['{"jsonrpc":"2.0","id":1,"method":"x","params":[]}', "request", "`params` must be an object"],
    ["[".repeat(100_000), "request", "nested more than 64 levels deep"],
    [`{"a":${"[".repeat(64)}${"]".repeat(64)}}`, "request", "nested more than 64 levels deep"],
  ])("%.60s is none (%s)", (text, kind, sentence) => {
    expect(parse(text)).toThrow(expect.objectContaining({ kind, message: expect.stringContaining(sentence) }));
  });

  test("brackets inside strings are no nesting", () => {
    expect(parse(`{"jsonrpc":"2.0","method":"x","params":{"a":"${"[".repeat(500)}\\"${"{".repeat(500)}"}}`)).not.toThrow();
  });
});
