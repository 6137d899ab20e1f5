import { runInNewContext } from "node:vm";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { CommandError, complete, type JsonSchema } from "../../src/index.ts";

/** `complete()` as a program calls it: a value that is no JSON Schema is an error, and no empty list. */

const failureOf = async (schema: unknown, request = {}) =>
  await complete(schema as JsonSchema, request).then(
    ({ values }) => `offers ${values.join(", ")}`,
    (error: Error) => {
      expect(error).toBeInstanceOf(CommandError);
      return error.message;
    },
  );

describe("refuses", () => {
  test.each<[string, unknown, string]>([
    [
      "a zod schema",
      z.object({ format: z.enum(["pdf"]) }),
      "the schema is one of zod, not a JSON Schema; pass z.toJSONSchema(schema).",
    ],
    [
      "the schema of another library",
      { "~standard": { version: 1, vendor: "valibot" } },
      "the schema is one of valibot, not a JSON Schema; pass the JSON Schema that its library makes of it.",
    ],
    ["a text", "string", '"string" is not a JSON Schema; pass an object such as { type: "string" }.'],
    ["a number", 1n, '1 is not a JSON Schema; pass an object such as { type: "string" }.'],
    ["nothing", undefined, 'undefined is not a JSON Schema; pass an object such as { type: "string" }.'],
    ["null", null, 'null is not a JSON Schema; pass an object such as { type: "string" }.'],
    [
      "a list",
      [{ type: "string" }],
      '[{"type":"string"}] is not a JSON Schema; pass an object such as { type: "string" }.',
    ],
    ["a class's instance", new Map(), 'a Map is not a JSON Schema; pass an object such as { type: "string" }.'],
    [
      "a function",
      () => ({ type: "string" }),
      'a function is not a JSON Schema; pass an object such as { type: "string" }.',
    ],
    [
      "a type that there is not",
      { type: "object", properties: { format: { type: "text" } } },
      '`properties.format.type` is "text", which JSON Schema does not allow there; types are array, boolean, integer, null, number, object, string.',
    ],
    ["an enum that is no list", { enum: "pdf" }, '`enum` is "pdf", which JSON Schema does not allow there.'],
    [
      "a property that is a list",
      { properties: { "a/b": [] } },
      "`properties.a/b` is [], which JSON Schema does not allow there.",
    ],
    [
      "a limit that is a text",
      { type: "integer", minimum: "1" },
      '`minimum` is "1", which JSON Schema does not allow there.',
    ],
    [
      "a type in a list of types",
      { type: ["string", "text"] },
      '`type.1` is "text", which JSON Schema does not allow there; types are array, boolean, integer, null, number, object, string.',
    ],
    [
      "a type in a definition",
      { $defs: { a: { type: 1 } } },
      "`$defs.a.type` is 1, which JSON Schema does not allow there; types are array, boolean, integer, null, number, object, string.",
    ],
    [
      "a type in an item of a list",
      { items: [{ items: { type: 1 } }] },
      "`items.0.items.type` is 1, which JSON Schema does not allow there; types are array, boolean, integer, null, number, object, string.",
    ],
    [
      "a required property that is marked in its own schema, as in draft-03",
      { properties: { a: { required: true } } },
      "`properties.a.required` is true, which JSON Schema does not allow there.",
    ],
    [
      "a limit that is a list",
      { exclusiveMinimum: [1] },
      "`exclusiveMinimum` is [1], which JSON Schema does not allow there.",
    ],
  ])("%s", async (_title, schema, reason) => {
    expect(await failureOf(schema)).toBe(`Completing failed: ${reason}`);
  });

  test("one that holds itself, and one that is nested too deep", async () => {
    const circle: Record<string, unknown> = { type: "array" };
    circle.items = circle;
    const deep = JSON.parse(`${'{"allOf":['.repeat(20_000)}{}${"]}".repeat(20_000)}`);
    expect(await failureOf(circle)).toMatch(/^offers|^Completing failed/);
    expect(await failureOf(deep)).toBe(
      "Completing failed: the schema is too large or nested too deep to complete from.",
    );
  });
});

test.each<[string, unknown, readonly string[]]>([
  ["of an earlier draft", { $schema: "http://json-schema.org/draft-07/schema#", enum: ["a", "b"] }, ["a", "b"]],
  [
    "of draft-04",
    {
      $schema: "http://json-schema.org/draft-04/schema#",
      id: "http://example.com/level#",
      type: "integer",
      ...{ minimum: 0, exclusiveMinimum: true, maximum: 3, exclusiveMaximum: true },
    },
    ["1", "2"],
  ],
  [
    "of draft-07 with an anchor",
    { $id: "#root", properties: { a: { $ref: "#/definitions/A" } }, definitions: { A: { $id: "#A" } } },
    ["a"],
  ],
  [
    "of 2019-09",
    { $recursiveAnchor: true, type: "object", dependentRequired: { a: ["b"] }, properties: { a: {} } },
    ["a"],
  ],
  ["of 2020-12", { $dynamicAnchor: "node", prefixItems: [{ const: 1 }], unevaluatedItems: false, enum: [[1]] }, ["1"]],
  ["with keywords of its own", { "x-note": 1, nullable: true, type: "boolean" }, ["true", "false", "null"]],
  ["made by zod", z.toJSONSchema(z.enum(["a"])), ["a"]],
  ["of another realm", runInNewContext('({ type: "object", properties: { a: { type: "string" } } })'), ["a"]],
  ["without a prototype", Object.assign(Object.create(null) as object, { const: 1 }), ["1"]],
])("completes from a schema %s", async (_title, schema, values) => {
  for (let times = 0; times < 2; times += 1) expect((await complete(schema as JsonSchema)).values).toEqual(values);
});

test("a list's items in drafts before 2020-12", async () => {
  const colours = { type: "array", items: [{ enum: ["red"] }], additionalItems: { enum: ["green"] } };
  const schema = { type: "object", properties: { colours } };
  const next = async (given: readonly string[]) =>
    (await complete(schema, { argument: "colours", arguments: { colours: given } })).values;
  expect(await next([])).toEqual(["red"]);
  expect(await next(["red"])).toEqual(["green"]);
});
