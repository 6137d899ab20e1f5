import { expect, test } from "vitest";
import { resolveContext, resolveReference } from "../../src/completion/references.ts";

const args = {
  user_id: "alice",
  pages: [{ title: "One" }, { title: "Two" }],
  options: { format: "pdf", depth: { level: 3 } },
  empty: null,
};
const context = { user_id: "bob", project: "atlas", options: { colour: "red" } };

test.each([
  ["$.user_id", "alice"],
  ["$.project", "atlas"],
  ["$.pages[1].title", "Two"],
  ["$.options.depth.level", 3],
  ["$.options", args.options],
  ["$.empty", null],
])("%s is found, in the arguments before the context", (reference, value) => {
  expect(resolveReference(reference, args, context)).toEqual({ ok: true, value });
});

test("a path that the arguments do not hold to its end is looked up in the context", () => {
  expect(resolveReference("$.options.colour", args, context)).toEqual({ ok: true, value: "red" });
});

test.each([
  "$.missing",
  "$.pages[2]",
  "$.pages.title",
  "$.user_id.length",
  "$.pages.length",
  "$.user_id[0]",
  "$.options[0]",
])("%s leads nowhere", (reference) => {
  expect(resolveReference(reference, args, context)).toEqual({ ok: false, error: "not_found" });
});

test.each([
  "",
  "$",
  "$.",
  "$..a",
  "$.a.",
  "$.a[",
  "$.a[x]",
  "$.a[-1]",
  "$.a[01]",
  "$[0]",
  "$.[0]",
  "user_id",
  "$.a]b",
  "$user_id",
  `$.${"a".repeat(2000)}`,
])("%s is no reference", (reference) => {
  expect(resolveReference(reference, args, context)).toEqual({ ok: false, error: "invalid_reference" });
});

test.each([
  "$.__proto__",
  "$.constructor",
  "$.constructor.prototype",
  "$.prototype",
  "$.options.__proto__",
  "$.toString",
  "$.pages.constructor",
  "$.hasOwnProperty",
])("%s does not lead out of the values", (reference) => {
  const hostile = JSON.parse('{ "__proto__": { "polluted": true }, "constructor": "mine", "prototype": 1 }') as Record<
    string,
    unknown
  >;
  for (const values of [args, hostile])
    expect(resolveReference(reference, values, values)).toEqual({ ok: false, error: "not_found" });
});

test("a context is resolved as a whole: one step, and what leads nowhere stays", () => {
  const written = {
    author: "$.user_id",
    nested: { list: ["$.pages[0].title", 5, null] },
    other: "$.missing",
    dollar: "$5",
    own: "$.project",
    project: "$.user_id",
  };
  expect(resolveContext({ ...args, sneaky: "$.user_id" }, written)).toEqual({
    author: "alice",
    nested: { list: ["One", 5, null] },
    other: "$.missing",
    dollar: "$5",
    own: "$.user_id",
    project: "alice",
  });
  expect(resolveContext({ sneaky: "$.user_id", user_id: "alice" }, { it: "$.sneaky" })).toEqual({ it: "$.user_id" });
});

test("a field called __proto__ stays a field", () => {
  const resolved = resolveContext({}, JSON.parse('{ "__proto__": { "a": 1 } }') as Record<string, unknown>);
  expect(Object.getPrototypeOf(resolved)).toBe(Object.prototype);
  expect(Object.keys(resolved)).toEqual(["__proto__"]);
});
