import { describe, expect, test } from "vitest";
import { z } from "zod";
import { jsonSchema, toJsonSchema } from "../../src/command/schema.ts";

describe("a listed schema says no more than it must", () => {
  const fields = z.object({
    count: z.int().describe("How many"),
    page: z.int().min(1).max(100).default(7),
    rows: z.array(z.object({ size: z.int(), minimum: z.int() })),
    odd: z.unknown().default({ minimum: Number.MIN_SAFE_INTEGER, additionalProperties: false }),
  });

  test("no bounds that every whole number has, and those that somebody set", () => {
    const { properties } = toJsonSchema(fields, "input") as { properties: Record<string, object> };
    expect(properties.count).toEqual({ type: "integer", description: "How many" });
    expect(properties.page).toEqual({ type: "integer", minimum: 1, maximum: 100, default: 7 });
    expect(properties.rows).toMatchObject({
      items: { properties: { size: { type: "integer" }, minimum: { type: "integer" } } },
    });
    expect(JSON.stringify(properties.rows)).not.toContain(String(Number.MAX_SAFE_INTEGER));
  });

  test("defaults are data and stay as they are", () => {
    const { properties } = toJsonSchema(fields, "output") as { properties: Record<string, object> };
    expect(properties.odd).toEqual({ default: { minimum: Number.MIN_SAFE_INTEGER, additionalProperties: false } });
  });

  test("an output does not say at every level that there is nothing else; an input that refuses other fields does", () => {
    expect(JSON.stringify(toJsonSchema(fields.omit({ odd: true }), "output"))).not.toContain("additionalProperties");
    expect(toJsonSchema(z.strictObject({ a: z.string() }), "input")).toHaveProperty("additionalProperties", false);
  });

  test("what an author wrote as JSON Schema stays as written", () => {
    const written = {
      type: "object",
      properties: { n: { type: "integer", maximum: Number.MAX_SAFE_INTEGER } },
      additionalProperties: false,
    };
    expect(toJsonSchema(jsonSchema(written), "output")).toEqual(written);
  });
});
