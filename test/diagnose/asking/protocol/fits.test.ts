import { expect, test } from "vitest";
import { misfit } from "../../../../src/diagnose/asking/protocol/fits.ts";

test("structured content is compared with its schema where that is plain, and not judged elsewhere", () => {
  const schema = {
    type: "object",
    properties: {
      name: { type: "string" },
      kind: { enum: ["a", "b"] },
      sizes: { type: "array", items: { type: ["integer", "null"] } },
      any: { $ref: "#/x" },
    },
    required: ["name"],
    additionalProperties: false,
  };
  expect(misfit(schema, { name: "n", kind: "a", sizes: [1, null], any: 7 })).toBeUndefined();
  expect(misfit(schema, [])).toBe("structuredContent is not of type object");
  expect(misfit(schema, {})).toBe("structuredContent.name is missing");
  expect(misfit(schema, { name: 1 })).toBe("structuredContent.name is not of type string");
  expect(misfit(schema, { name: "n", kind: "c" })).toBe("structuredContent.kind is none of the values of its enum");
  expect(misfit(schema, { name: "n", sizes: [1, 1.5] })).toBe(
    "structuredContent.sizes[1] is not of type integer or null",
  );
  expect(misfit(schema, { name: "n", more: 1 })).toBe("structuredContent.more is not in the schema");
  expect(misfit({ anyOf: [{ type: "string" }] }, 1)).toBeUndefined();
});
