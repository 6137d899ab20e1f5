import { expect, test } from "vitest";
import { complete } from "../../src/completion/complete.ts";

test("a multiple of a decimal step is one: all eleven from 0 to 1 in steps of 0.1", async () => {
  const schema = { type: "number", minimum: 0, maximum: 1, multipleOf: 0.1 };
  const { values } = await complete(schema, {});
  expect(values.toSorted()).toEqual(["0", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "1"]);
});

test("open names end at the first separator, so that a long path costs no more than its length", async () => {
  const schema = { type: "object", additionalProperties: { $ref: "#" }, properties: { a: { type: "string" } } };
  expect((await complete(schema, { partial: "b.".repeat(40) })).values).toEqual([`${"b.".repeat(40)}a`]);
  const dotted = { type: "object", properties: { "a.b": { type: "object", properties: { c: { type: "string" } } } } };
  expect((await complete(dotted, { partial: "a.b." })).values).toEqual(["a.b.c"]);
});

// Three lookaheads use up the search before it finds one, and the part behind what was typed is not marked as cut.
test.fails("a search that was cut says that there is more, also behind what was typed", async () => {
  const password = "^(?=.*\\d)(?=.*[a-z])(?=.*[A-Z]).{8,}$";
  expect(await complete({ type: "string", pattern: password }, { partial: "abc" })).toMatchObject({ hasMore: true });
});
