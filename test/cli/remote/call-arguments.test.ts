import { describe, expect, test } from "vitest";
import { readArguments, readJsonArguments } from "../../../src/cli/remote/call-arguments.ts";
import { UsageError } from "../../../src/errors.ts";

const schema = {
  type: "object",
  properties: {
    site: { type: "string", description: "Where to begin." },
    depth: { type: "integer" },
    share: { type: "number" },
    deep: { type: "boolean" },
    format: { enum: ["pdf", "html", 3] },
    tags: { type: "array", items: { type: "string" } },
    sizes: { type: "array", items: { type: "number" } },
    options: { type: "object", properties: { level: { type: "number" }, name: { type: "string" } } },
    either: { anyOf: [{ type: "number" }, { type: "string" }] },
  },
  required: ["site"],
};

describe("key=value is read as the tool's schema has it", () => {
  test.each<[string[], object]>([
    [["site=a=b"], { site: "a=b" }],
    [["site="], { site: "" }],
    [
      ["site=5", "depth=5", "share=0.5", "deep=true", "format=3"],
      { site: "5", depth: 5, share: 0.5, deep: true, format: 3 },
    ],
    [["site=x", "tags=a", "tags=b c", "sizes=1", "sizes=2.5"], { site: "x", tags: ["a", "b c"], sizes: [1, 2.5] }],
    [["site=x", 'tags=["a","b"]', "tags=c"], { site: "x", tags: ["a", "b", "c"] }],
    [["site=x", 'options={"level":1}'], { site: "x", options: { level: 1 } }],
    [
      ["site=x", "options.level=1", "options.name=2", "options.more.deep=true"],
      { site: "x", options: { level: 1, name: "2", more: { deep: true } } },
    ],
    [["site=x", "either=7"], { site: "x", either: 7 }],
    [["site=x", "either=seven"], { site: "x", either: "seven" }],
  ])("%j", (words, expected) => {
    expect(readArguments(words, schema)).toEqual(expected);
  });

  test("it wins over what was given as JSON, which is sent as it is", () => {
    expect(readArguments(["depth=2"], schema, { site: "x", depth: 1, unheard: [null] })).toEqual({
      site: "x",
      depth: 2,
      unheard: [null],
    });
  });

  test("a schema that says that it takes more gets more, as JSON where it can be", () => {
    for (const open of [
      { type: "object" },
      { properties: {}, additionalProperties: true },
      { properties: {}, additionalProperties: { type: "number" } },
    ])
      expect(readArguments(["a=1", "b=x", "c.d=[1]"], open)).toEqual({ a: 1, b: "x", c: { d: [1] } });
  });

  test("a schema that makes no sense is left to its server", () => {
    for (const broken of [{ properties: { a: null } }, { required: 5 }, { properties: { a: { anyOf: {} } } }])
      expect(readArguments(["a=1"], broken)).toEqual({ a: 1 });
  });

  test("a key named __proto__ is a key like any other", () => {
    const input = readArguments(["__proto__=1", "a.__proto__.b=2"], {});
    expect(Object.keys(input)).toEqual(["__proto__", "a"]);
    expect(({} as Record<string, unknown>).b).toBeUndefined();
  });
});

describe("what can be told to be wrong is refused by its name", () => {
  test.each<[string[], string]>([
    [["site=x", "depht=1"], "There is no argument depht; did you mean depth?"],
    [
      ["site=x", "zzz=1"],
      "There is no argument zzz; there are site, depth, share, deep, format, tags, sizes, options, either.",
    ],
    [["site=x", "site.a=1"], "There is no argument site.a; did you mean site?"],
    [["site"], '"site" is no argument; write it as key=value.'],
    [["=5"], '"=5" is no argument; write it as key=value.'],
    [["site=x", "site=y"], "site is given twice, and takes one value."],
    [["site=x", "options.level=1", "options.level=2"], "options.level is given twice, and takes one value."],
    [["site=x", "options.level=1", "options.level.x=2"], "options.level.x does not fit what was given before it."],
    [["site=x", "depth=many"], 'depth must be a number, not "many".'],
    [["site=x", "depth="], 'depth must be a number, not "".'],
    [["site=x", "depth=1.5"], 'depth must be a whole number, not "1.5".'],
    [["site=x", "deep=yes"], 'deep must be true or false, not "yes".'],
    [["site=x", "format=pfd"], 'format must be one of pdf, html, 3, not "pfd". Did you mean pdf?'],
    [["site=x", "sizes=1", "sizes=two"], 'sizes must be a number, not "two".'],
    [
      ["site=x", "options=5"],
      'options must be a JSON object, not "5". Its fields can be given one by one: options.field=value.',
    ],
    [["depth=1"], "Missing site (Where to begin); add site=…"],
    [
      ["site=x", "de\x1b[31m=1"],
      "There is no argument de [31m; there are site, depth, share, deep, format, tags, sizes, options, either.",
    ],
  ])("%j", (words, sentence) => {
    expect(() => readArguments(words, schema)).toThrow(new UsageError(sentence));
  });

  test("a tool without arguments takes none", () => {
    for (const closed of [
      { type: "object", properties: {} },
      { type: "object", additionalProperties: false },
    ])
      expect(() => readArguments(["a=1"], closed)).toThrow(
        new UsageError("There is no argument a; this tool takes none."),
      );
  });

  test("what has a default is never missing", () => {
    expect(readArguments([], { properties: { a: { default: 1 } }, required: ["a"] })).toEqual({});
  });

  test.each(["{", "[1]", "null", "5"])("--args %s", (text) => {
    expect(() => readJsonArguments(text)).toThrow(UsageError);
    expect(() => readJsonArguments(text)).toThrow(/^--args /);
  });
});
