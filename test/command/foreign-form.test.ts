import { expect, test } from "vitest";
import { choicesOf, fieldsOf, notesOf } from "../../src/cli/screens/question-fields.ts";
import { toForm } from "../../src/command/foreign-form.ts";
import { jsonSchema, validate } from "../../src/command/schema.ts";

test("a form keeps what the specification knows of forms", () => {
  const form = {
    type: "object",
    properties: {
      name: { type: "string", title: "Name", description: "Yours", minLength: 1, maxLength: 9, default: "Ada" },
      mail: { type: "string", format: "email" },
      age: { type: "integer", minimum: 0, maximum: 150, default: 3 },
      sure: { type: "boolean", default: false },
      one: { type: "string", enum: ["a", "b"], enumNames: ["A", "B"] },
      titled: { type: "string", oneOf: [{ const: "a", title: "A" }] },
      some: { type: "array", minItems: 1, maxItems: 2, items: { type: "string", enum: ["a"] }, default: ["a"] },
      several: { type: "array", items: { anyOf: [{ const: "a", title: "A" }] } },
    },
    required: ["name"],
  };
  expect(toForm(form)).toEqual(form);
});

test("nothing else of it is looked at, and whatever is left can be shown and checked", async () => {
  const odd = {
    type: "array",
    $ref: "#/$defs/x",
    allOf: [{ properties: { name: false } }],
    properties: {
      name: { type: "string", pattern: "^(a+)+$", $ref: "#", minLength: -1, maxLength: "9", default: { a: 1 } },
      pick: { type: "banana", enum: [], oneOf: "text", anyOf: [{ title: "no const" }], items: [1] },
      none: null,
      many: { type: "array", items: { items: { pattern: "x", enum: [1, "a", true] } } },
    },
    required: [1, "name", null],
  };
  const form = toForm(odd);
  expect(form).toEqual({
    type: "object",
    properties: {
      name: { type: "string" },
      pick: {},
      none: {},
      many: { type: "array", items: { items: { enum: [1, "a", true] } } },
    },
    required: ["name"],
  });
  for (const field of fieldsOf(form)) expect([notesOf(field), choicesOf(field.schema)]).toHaveLength(2);
  expect(await validate(jsonSchema(form), { name: `${"a".repeat(50)}!` })).toMatchObject({ ok: true });
  for (const other of [5, null, [], { required: 5 }]) expect(toForm(other)).toEqual({ type: "object", properties: {} });
});
