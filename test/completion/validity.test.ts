import { Ajv2020 } from "ajv/dist/2020.js";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { JsonSchema } from "../../src/command/schema.ts";
import { complete } from "../../src/completion/complete.ts";
import { CompletionFailed } from "../../src/completion/completion-failed.ts";
import { FakeClock } from "../../src/testing/fake-clock.ts";
import { rounds } from "../helpers/rounds.ts";

fc.configureGlobal({ seed: 20260728 });

/** For random schemas: whatever is offered is valid, and offered again. */

const clock = new FakeClock();
const maybe = <T>(arbitrary: fc.Arbitrary<T>, freq = 2) => fc.option(arbitrary, { nil: undefined, freq });
const patterns = [
  "^[a-z]+$",
  "^(a+)+$",
  "\\d",
  "^.{2,4}$",
  "^(red|green)$",
  "^(?!a)[a-c]{1,2}$",
  "^(\\w)\\1$",
  "e$",
  "^\\S+@\\S+\\.\\w+$",
  "^$",
  "^\\p{Lu}",
];
const formats = [
  "date",
  "date-time",
  "time",
  "email",
  "uuid",
  "uri",
  "ipv4",
  "ipv6",
  "hostname",
  "duration",
  "json-pointer",
  "unknown",
];
const someText = fc.constantFrom("", "a", "ab", "red", "Red", "1", "null", "example", "2026-01-01");
const someNumber = fc.oneof(
  fc.integer({ min: -50, max: 50 }),
  fc.constantFrom(0.5, -2.25, 1000, 65535, 1e21, Number.MAX_SAFE_INTEGER),
);
const someValue = fc.oneof(
  someText,
  someNumber,
  fc.constantFrom<unknown>(null, true, false, {}, { a: 1 }, [], [1], ["a", "a"]),
);
const distinct = (values: fc.Arbitrary<unknown>) =>
  fc.uniqueArray(values, { minLength: 1, maxLength: 5, selector: (value) => JSON.stringify(value) });

const textRules = {
  minLength: maybe(fc.nat({ max: 3 })),
  maxLength: maybe(fc.integer({ min: 1, max: 12 })),
  pattern: maybe(fc.constantFrom(...patterns), 1),
  format: maybe(fc.constantFrom(...formats)),
  examples: maybe(fc.array(someText, { maxLength: 4 })),
};
const numberRules = {
  minimum: maybe(fc.integer({ min: -50, max: 5 }), 1),
  maximum: maybe(fc.oneof(fc.integer({ min: 0, max: 100 }), fc.constantFrom(0.5, 65535, 1e6)), 1),
  exclusiveMinimum: maybe(fc.integer({ min: -60, max: 3 })),
  exclusiveMaximum: maybe(fc.constantFrom(4, 10.5, 101)),
  multipleOf: maybe(fc.constantFrom(1, 2, 3, 7, 10, 0.1, 0.25, 1000)),
  default: maybe(someNumber),
};
const someType = fc.constantFrom("string", "integer", "number", "boolean", "null", "array", "object");
const types = maybe(fc.oneof(someType, fc.uniqueArray(someType, { minLength: 1, maxLength: 3 })));

const plainSchema: fc.Arbitrary<JsonSchema> = fc
  .oneof(
    fc.record({ type: maybe(fc.constantFrom("string", ["string", "null"]), 5), ...textRules }),
    fc.record({
      type: fc.constantFrom("integer", "number", ["integer", "null"]),
      nullable: maybe(fc.constant(true), 1),
      ...numberRules,
    }),
    fc.record({ type: types, enum: distinct(someValue), minLength: textRules.minLength, maximum: numberRules.maximum }),
    fc.record({ const: someValue, pattern: maybe(fc.constantFrom(...patterns), 1) }),
    fc.record({
      type: types,
      ...textRules,
      ...numberRules,
      enum: maybe(distinct(someValue)),
      default: maybe(someValue),
    }),
  )
  .map((schema) => JSON.parse(JSON.stringify(schema)) as JsonSchema);

// A linter takes an object with `then` for a promise.
const thenOf = (schema: JsonSchema): JsonSchema => JSON.parse(`{ "then": ${JSON.stringify(schema)} }`) as JsonSchema;

const { schema: valueSchema } = fc.letrec<{ schema: JsonSchema }>((tie) => ({
  schema: fc.oneof(
    { maxDepth: 3 },
    { weight: 5, arbitrary: plainSchema },
    fc
      .tuple(
        fc.constantFrom("anyOf", "oneOf", "allOf"),
        fc.array(tie("schema"), { minLength: 1, maxLength: 3 }),
        plainSchema,
      )
      .map(([keyword, list, rest]) => ({ ...rest, [keyword]: list })),
    fc.tuple(tie("schema"), plainSchema).map(([not, rest]) => ({ ...rest, not })),
    fc
      .tuple(tie("schema"), tie("schema"), tie("schema"), plainSchema)
      .map(([one, two, three, rest]) => ({ ...rest, if: one, ...thenOf(two), else: three })),
    fc.constantFrom("a", "b", "loop").map((name) => ({ $ref: `#/$defs/${name}` })),
  ),
}));

const anySchema = fc
  .record({ schema: valueSchema, a: plainSchema, b: valueSchema })
  // `b` may mention itself only through `loop`, which always has a way out.
  .map(({ schema, a, b }) => ({
    ...schema,
    $defs: {
      a,
      b: withoutLoops(b),
      loop: { type: ["string", "array"], items: { $ref: "#/$defs/loop" }, maxLength: 3, examples: ["x"] },
    },
  }));

const withoutLoops = (schema: JsonSchema) =>
  JSON.parse(JSON.stringify(schema).replaceAll('"#/$defs/b"', '"#/$defs/a"')) as JsonSchema;

const ajv = new Ajv2020({ strict: false, multipleOfPrecision: 9, validateFormats: false, logger: false });

/** The values a text can stand for. */
function readingsOf(text: string): unknown[] {
  try {
    return [text, JSON.parse(text)];
  } catch {
    return [text];
  }
}

const anyPartial = fc.constantFrom("", "", "a", "1", "-", "r", "2", "e", "R");

test("every value offered is valid against its schema, and the same call gives the same answer", async () => {
  let offered = 0;
  await fc.assert(
    fc.asyncProperty(anySchema, anyPartial, async (schema, partial) => {
      const root = { type: "object", properties: { it: schema }, $defs: schema.$defs };
      const answer = await complete(root, { argument: "it", partial }, { clock });
      expect(await complete(root, { argument: "it", partial }, { clock })).toEqual(answer);
      expect(answer.values.length).toBeLessThanOrEqual(100);
      expect(answer.total).toBeGreaterThanOrEqual(answer.values.length);
      if (answer.values.length === 0) return;
      offered += answer.values.length;
      // A list has items to offer: each fits somewhere in one.
      const isValid = ajv.compile(schema);
      const isItem = ajv.compile({ $ref: "#/$defs/loop", $defs: schema.$defs });
      for (const text of answer.values) {
        const fits =
          readingsOf(text).some((value) => isValid(value)) ||
          (JSON.stringify(schema).includes("#/$defs/loop") && isItem(text));
        expect(fits, `${JSON.stringify(text)} offered for ${JSON.stringify(schema)}`).toBe(true);
      }
    }),
    { numRuns: 200 * rounds.propertyFactor },
  );
  expect(offered).toBeGreaterThan(20 * rounds.propertyFactor);
});

test("every item offered for a list is valid against its items, and names of properties are the schema's", async () => {
  await fc.assert(
    fc.asyncProperty(
      plainSchema,
      fc.array(fc.constantFrom("a", 1, "red"), { maxLength: 2 }),
      fc.dictionary(fc.constantFrom("x", "y", "__proto__", "z"), plainSchema),
      async (items, given, properties) => {
        const root = {
          type: "object",
          properties: { list: { type: "array", items, uniqueItems: true }, inside: { type: "object", properties } },
        };
        const isItem = ajv.compile(items);
        for (const text of (await complete(root, { argument: "list", arguments: { list: given } }, { clock })).values) {
          expect(readingsOf(text).some((value) => isItem(value) && !given.includes(value as string))).toBe(true);
        }
        expect(new Set((await complete(root, { argument: "inside" }, { clock })).values)).toEqual(
          new Set(Object.keys(properties)),
        );
      },
    ),
    { numRuns: 60 * rounds.propertyFactor },
  );
});

test("whatever it is given instead of a schema, it answers or fails by name", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.jsonValue({ maxDepth: 5 }),
      fc.string({ maxLength: 5 }),
      fc.option(fc.string({ maxLength: 5 }), { nil: undefined }),
      async (value, partial, argument) => {
        const schemas = [
          value,
          { type: "object", properties: value },
          { anyOf: value, items: value, examples: value },
          { $ref: value, pattern: value, required: value },
        ];
        for (const schema of schemas) {
          const request = argument === undefined ? { partial } : { partial, argument };
          const answer = await complete(schema as JsonSchema, request, { clock }).catch((error: unknown) => error);
          if (answer instanceof Error) expect(answer).toBeInstanceOf(CompletionFailed);
        }
      },
    ),
    { numRuns: 100 * rounds.propertyFactor },
  );
});
