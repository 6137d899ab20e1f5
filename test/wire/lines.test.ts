import { describe, expect, test } from "vitest";
import { LineSplitter } from "../../src/wire/lines.ts";

const split = (chunks: readonly (string | Buffer)[], max?: number) => {
  const splitter = new LineSplitter(max);
  return chunks.flatMap((chunk) => [...splitter.push(Buffer.from(chunk))].map((line) => line.toString()));
};

describe("lines", () => {
  test("end at a newline and nowhere else", () => {
    expect(split(['{"a":"x\u2028y\u2029z\u0085"}\n{"b":1}\r\n\n'])).toEqual([
      '{"a":"x\u2028y\u2029z\u0085"}',
      '{"b":1}',
    ]);
  });

  test("are put together from pieces, also when a letter is cut in two", () => {
    const bytes = Buffer.from('{"text":"Grüße"}\n{"n":2}\n');
    for (let at = 0; at <= bytes.length; at++)
      expect(split([bytes.subarray(0, at), bytes.subarray(at)])).toEqual(['{"text":"Grüße"}', '{"n":2}']);
  });

  test("one that is too long is dropped while it arrives, and the next is read", () => {
    expect(split(["x".repeat(6), "y".repeat(6), "z\nnext\n"], 10)).toEqual(["tooLong", "next"]);
    expect(split(["x".repeat(10), "\n"], 10)).toEqual(["x".repeat(10)]);
  });

  test("one that never ends is known as too long while it arrives", () => {
    const splitter = new LineSplitter(10);
    const isTooLong = ["x".repeat(10), "y", "y\nnext"].map((chunk) => {
      Array.from(splitter.push(Buffer.from(chunk)));
      return splitter.isTooLong;
    });
    expect(isTooLong).toEqual([false, true, false]);
  });
});
