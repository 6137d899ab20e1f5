import { expect, test } from "vitest";
import { complete } from "../../src/completion/complete.ts";
import { CompletionFailed } from "../../src/completion/completion-failed.ts";
import { filterCompletions } from "../../src/completion/filter.ts";
import { resolveContext, resolveReference } from "../../src/completion/references.ts";

/** The examples of the completion interface as it was first written down, one a test, with what they say. */

test("enum: matching values, filtered by what was typed", async () => {
  const schema = { type: "string", enum: ["red", "green", "blue"] };
  // The example shows red and green for a request it does not give. No prefix fits both; the prefix filter is what
  // counts.
  expect((await complete(schema, { partial: "r" })).values).toEqual(["red"]);
  expect((await complete(schema, { partial: "g" })).values).toEqual(["green"]);
  expect((await complete(schema, { partial: "" })).values).toEqual(["red", "green", "blue"]);
});

test("object: the names of its properties", async () => {
  const schema = {
    type: "object",
    properties: { firstName: { type: "string" }, lastName: { type: "string" }, email: { type: "string" } },
  };
  expect(await complete(schema, {})).toEqual({ values: ["firstName", "lastName", "email"], total: 3, hasMore: false });
});

test("number range: numbers of the range", async () => {
  const { values } = await complete({ type: "integer", minimum: 0, maximum: 100 }, {});
  expect(values).toEqual(["0", "10", "20", "30", "40", "50", "60", "70", "80", "90", "100"]);
});

test("pattern: texts that match it", async () => {
  const { values } = await complete({ type: "string", pattern: "^[a-z_]+$" }, {});
  // The example names two words. What it asks for is texts that match; that these two are among them is a courtesy.
  expect(values.length).toBeGreaterThanOrEqual(3);
  for (const value of values) expect(value).toMatch(/^[a-z_]+$/);
  expect(values).toEqual(expect.arrayContaining(["snake_case", "example_name"]));
});

test("the name of an argument, from its first letters, with others given", async () => {
  const schema = {
    type: "object",
    properties: { param1: { type: "string" }, options: { type: "object" }, output: { type: "string" } },
  };
  expect((await complete(schema, { partial: "opt", arguments: { param1: "value1" }, context: {} })).values).toEqual([
    "options",
  ]);
});

test("completion/complete: the value of the argument that is being typed", async () => {
  const schema = { type: "object", properties: { format: { enum: ["pdf", "docx", "txt"] }, file: { type: "string" } } };
  const request = { partial: "pdf", arguments: { format: "pdf" }, context: { previous_file: "document.pdf" } };
  // The example answers pdf, docx and txt to "pdf"; of these only pdf begins so. Its shape is the answer's.
  expect(await complete(schema, request)).toEqual({ values: ["pdf"], total: 1, hasMore: false });
  expect(await complete(schema, { ...request, partial: "", argument: "format" })).toEqual({
    values: ["pdf", "docx", "txt"],
    total: 3,
    hasMore: false,
  });
});

test("formats to select from, with nothing typed", async () => {
  expect((await complete({ enum: ["json", "xml", "csv"] }, { partial: "", arguments: {} })).values).toEqual([
    "json",
    "xml",
    "csv",
  ]);
});

test("filter", () => {
  expect(filterCompletions(["apple", "banana", "apricot"], "ap")).toEqual(["apple", "apricot"]);
});

test("resolve a context", () => {
  const context = { author_ref: "$.user_id", category: "documents" };
  expect(resolveContext({ user_id: "alice", timestamp: "2024-01-01" }, context)).toEqual({
    author_ref: "alice",
    category: "documents",
  });
});

test("resolve one reference", () => {
  expect(resolveReference("$.username", { username: "alice" }, {})).toEqual({ ok: true, value: "alice" });
  expect(resolveReference("$.missing", { username: "alice" }, {})).toEqual({ ok: false, error: "not_found" });
});

test("a bad schema is completion_failed, with a reason", async () => {
  const failed = await complete({ type: "string", enum: "red" }, {}).catch((error: unknown) => error);
  expect(failed).toBeInstanceOf(CompletionFailed);
  expect(failed).toMatchObject({ code: "completion_failed", reason: "`enum` must be a list in a JSON Schema." });
});
