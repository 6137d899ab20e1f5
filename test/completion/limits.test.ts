import { describe, expect, test } from "vitest";
import type { JsonSchema } from "../../src/command/schema.ts";
import { complete } from "../../src/completion/complete.ts";

async function timed<T>(work: () => Promise<T>): Promise<{ result: T; ms: number }> {
  const start = performance.now();
  const result = await work();
  return { result, ms: performance.now() - start };
}

describe("third-party patterns", () => {
  test("^(a+)+$ with 30 characters, 1,000 times: answered, and everything else has its turn", async () => {
    const schema = { type: "string", pattern: "^(a+)+$" };
    const requests = [{ partial: "a".repeat(30) }, { partial: `${"a".repeat(30)}!` }];
    let turns = 0;
    let isDone = false;
    const ping = (async () => {
      for (; !isDone; turns++) await new Promise((resolve) => setImmediate(resolve));
    })();
    const { ms } = await timed(async () => {
      for (let round = 0; round < 500; round++) {
        const [match, miss] = await Promise.all(requests.map((request) => complete(schema, request)));
        expect(match?.values[0]).toBe("a".repeat(30));
        expect(miss).toEqual({ values: [], total: 0, hasMore: false });
        await new Promise((resolve) => setImmediate(resolve));
      }
    });
    isDone = true;
    await ping;
    // RegExp would need seconds for each that does not match. Here it is about 200 µs where nothing else runs.
    expect(ms).toBeLessThan(30_000);
    expect(turns).toBeGreaterThanOrEqual(500);
  });

  test("an enum whose values take RegExp minutes", async () => {
    const schema = {
      enum: Array.from({ length: 100 }, (_, index) => `${"a".repeat(40)}${index}!`),
      pattern: "^(a+)+$",
    };
    const { result, ms } = await timed(() => complete(schema));
    expect(result.values).toEqual([]);
    expect(ms).toBeLessThan(30_000);
  });

  test("many hostile patterns in one schema end together", async () => {
    const patterns = Array.from({ length: 400 }, (_, index) => ({
      type: "string",
      pattern: `(?=.*x)(?=.*y)(.*)*${index}$`,
    }));
    const { ms } = await timed(() =>
      complete({ anyOf: patterns }, { partial: "a".repeat(500) }).catch(() => undefined),
    );
    expect(ms).toBeLessThan(30_000);
  });
});

describe("large schemas", () => {
  const properties = Object.fromEntries(
    Array.from({ length: 10_000 }, (_, index) => [
      `property${index}`,
      { type: "string", description: `Number ${index}` },
    ]),
  );
  const large: JsonSchema = { type: "object", properties, required: ["property9999"] };

  test("10,000 properties", async () => {
    const requests = [
      { partial: "" },
      { partial: "property99" },
      { partial: "pp9" },
      { partial: "nothing" },
      { argument: "property77" },
    ];
    const totals: number[] = [];
    const { ms } = await timed(async () => {
      for (const request of requests) totals.push((await complete(large, request)).total ?? -1);
    });
    expect(totals).toEqual([10_000, 111, 3439, 0, 0]);
    expect((await complete(large)).values[0]).toBe("property9999");
    // About 10 ms each where nothing else runs; comparing each with each would take minutes.
    expect(ms).toBeLessThan(30_000);
  });

  test("1,000 enum values", async () => {
    const schema = {
      type: "object",
      properties: { it: { enum: Array.from({ length: 1000 }, (_, index) => `value-${index}`) } },
    };
    expect(await complete(schema, { argument: "it", partial: "value-5" })).toMatchObject({ total: 111, hasMore: true });
  });

  test("1,500 choices with titles", async () => {
    const choices = {
      oneOf: Array.from({ length: 1500 }, (_, index) => ({ const: `value-${index}`, title: `Number ${index}` })),
    };
    expect(await complete(choices, { partial: "value-14" })).toMatchObject({ total: 111, hasMore: true });
  });

  test("alternatives that multiply are cut, and the answer says that there is more", async () => {
    const options = Array.from({ length: 20 }, (_, index) => ({ minimum: index }));
    const { result, ms } = await timed(() =>
      complete({ type: "integer", maximum: 100, allOf: Array.from({ length: 20 }, () => ({ anyOf: options })) }),
    );
    expect(result.hasMore).toBe(true);
    expect(ms).toBeLessThan(30_000);
  });

  test.each<[string, JsonSchema]>([
    ["nested too deep", Array.from({ length: 200 }).reduce<JsonSchema>((inner) => ({ allOf: [inner] }), { const: 1 })],
    [
      "too much to check",
      {
        enum: Array.from({ length: 5000 }, (_, index) => `value${index}`.repeat(20)),
        pattern: "^((v|a|l|u|e|\\d)+)+$",
      },
    ],
  ])("a schema that is %s fails by name", async (_title, schema) => {
    const { result, ms } = await timed(() => complete(schema).catch((error: unknown) => error));
    expect(result).toMatchObject({ name: "CompletionFailed", fault: "limit", code: "completion_failed" });
    expect(ms).toBeLessThan(30_000);
  });

  test("a recursive schema is followed as far as was typed", async () => {
    const tree = { type: "object", properties: { name: { type: "string" }, child: { $ref: "#" } } };
    expect((await complete(tree, { partial: "child.child.child.na" })).values).toEqual(["child.child.child.name"]);
    expect((await complete(tree, { partial: "child.".repeat(150) })).values).toHaveLength(2);
  });
});

describe("long requests", () => {
  test.each([
    ["what was typed", { partial: "x".repeat(1025) }],
    ["what was typed, counted in bytes", { partial: "ü".repeat(600) }],
    ["the argument's name", { argument: "x".repeat(1025) }],
  ])("%s: at most 1,024 bytes", async (_title, request) => {
    await expect(complete({ enum: ["x"] }, request)).rejects.toMatchObject({
      fault: "limit",
      code: "completion_failed",
    });
  });

  test("1,024 bytes are fine", async () => {
    expect((await complete({ enum: ["x".repeat(1024)] }, { partial: "x".repeat(1024) })).values).toHaveLength(1);
  });
});
