import { describe, expect, test } from "vitest";
import { readMessage } from "../../src/wire/message.ts";

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
  const answerOf = (count: number) =>
    readMessage(`{"jsonrpc":"2.0","id":3,"result":{"rows":[${"[0],".repeat(count - 1)}[0]]}}`);

  test("is read: a result has no reason to be small", () => {
    expect(answerOf(200_000)).toMatchObject({ id: 3, result: { rows: { length: 200_000 } } });
  });

  test("of more than a million fails its request", () => {
    expect(answerOf(500_001)).toEqual({
      id: 3,
      error: { code: -32603, message: "the answer holds more than 1,000,000 values" },
    });
  });
});
