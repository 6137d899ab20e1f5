import { expect, test } from "vitest";
import { weighJson } from "../../src/wire/json.ts";

const none = { depth: 1_000, values: 1_000_000 };

test("values and levels are counted outside of texts only", () => {
  expect(weighJson('{"a":[1,2,{"b":"[[{,,"}],"c":"\\"[,"}', none)).toEqual({ depth: 3, values: 7, excess: undefined });
  expect(weighJson('"never ends [[[', none)).toEqual({ depth: 0, values: 1, excess: undefined });
  expect(weighJson('["\\\\",["\\\\\\"]"]]', none)).toEqual({ depth: 2, values: 4, excess: undefined });
});

test.each([
  ["levels", "[[[]]]", { depth: 2, values: 9 }, "depth"],
  ["values", "[1,2,3]", { depth: 2, values: 3 }, "values"],
  ["lists", "[[],[],[]]", { depth: 2, values: 5 }, "values"],
  ["members of one object", '[{"a":1,"b":2},{"c":3,"d":4,"e":5}]', { depth: 2, values: 99, members: 2 }, "members"],
] as const)("too many %s are seen where the limit is passed", (_, text, limits, excess) => {
  expect(weighJson(text, limits).excess).toBe(excess);
  expect(weighJson(text, none).excess).toBeUndefined();
});

test("members are counted for each object by itself", () => {
  expect(weighJson('[{"a":1,"b":2},{"c":{"x":1,"y":2},"d":4}]', { ...none, members: 2 }).excess).toBeUndefined();
});

test("closing what was never opened counts for nothing", () => {
  expect(weighJson("]]]]{}", { depth: 1, values: 9, members: 1 })).toEqual({ depth: 1, values: 2, excess: undefined });
});
