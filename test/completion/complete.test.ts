import { isIPv4, isIPv6 } from "node:net";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import type { JsonSchema } from "../../src/command/schema.ts";
import { type CompletionRequest, complete, completeWithDescriptions } from "../../src/completion/complete.ts";
import { CompletionFailed } from "../../src/completion/completion-failed.ts";
import { FakeClock } from "../../src/testing/fake-clock.ts";

const valuesOf = async (schema: JsonSchema, request: CompletionRequest = {}) =>
  (await complete(schema, request)).values;

describe("values", () => {
  test.each<[string, JsonSchema, string[]]>([
    ["enum, in its order", { enum: ["red", "green", 3, null, true] }, ["red", "green", "3", "null", "true"]],
    ["const", { const: "only" }, ["only"]],
    ["default, then examples", { type: "string", default: "a", examples: ["b", "a", "c"] }, ["a", "b", "c"]],
    [
      "default and examples that the schema itself refuses are left out",
      { type: "string", maxLength: 2, default: "long", examples: ["ok", 5] },
      ["ok"],
    ],
    ["boolean", { type: "boolean" }, ["true", "false"]],
    ["null beside another type", { type: ["boolean", "null"] }, ["true", "false", "null"]],
    ["nullable", { type: "boolean", nullable: true }, ["true", "false", "null"]],
    [
      "an enum that the rest of the schema narrows",
      { enum: ["a", "bb", "ccc"], minLength: 2, not: { const: "ccc" } },
      ["bb"],
    ],
    [
      "anyOf",
      { anyOf: [{ enum: ["a", "b"] }, { type: "boolean" }, { type: "null" }] },
      ["a", "b", "true", "false", "null"],
    ],
    ["oneOf: exactly one", { oneOf: [{ enum: ["a", "b"] }, { enum: ["b", "c"] }] }, ["a", "c"]],
    ["allOf", { allOf: [{ enum: ["a", "b", "c"] }, { enum: ["b", "c", "d"] }] }, ["b", "c"]],
    ["limits from several places", { type: "integer", allOf: [{ minimum: 3 }, { maximum: 5 }] }, ["3", "4", "5"]],
    ["$ref", { $ref: "#/$defs/colour", $defs: { colour: { enum: ["red"] } } }, ["red"]],
    [
      "$ref by anchor, and with a slash in its name",
      {
        anyOf: [{ $ref: "#c" }, { $ref: "#/$defs/a~1b" }],
        $defs: { c: { $anchor: "c", const: 1 }, "a/b": { const: 2 } },
      },
      ["1", "2"],
    ],
    [
      "if, then, else",
      JSON.parse(
        '{ "type": "integer", "minimum": 0, "maximum": 9, "if": { "maximum": 4 }, "then": { "multipleOf": 2 }, "else": { "multipleOf": 3 } }',
      ),
      ["0", "2", "4", "6", "9"],
    ],
    ["nothing known", { type: "string" }, []],
    ["an empty schema", {}, []],
  ])("%s", async (_title, schema, expected) => {
    const { values, total, hasMore } = await complete(schema);
    expect(values).toEqual(expected);
    expect({ total, hasMore }).toEqual({ total: expected.length, hasMore: false });
  });

  test("a reference that leads back to itself ends", async () => {
    expect(await valuesOf({ $ref: "#" })).toEqual([]);
    expect(await valuesOf({ anyOf: [{ $ref: "#" }, { const: "out" }] })).toEqual(["out"]);
    expect(
      await valuesOf({ $ref: "#/$defs/a", $defs: { a: { $ref: "#/$defs/b" }, b: { $ref: "#/$defs/a" } } }),
    ).toEqual([]);
  });

  test("one of several in an answer of a hundred", async () => {
    const { values, total, hasMore } = await complete(
      { enum: Array.from({ length: 1000 }, (_, index) => `value-${index}`) },
      { partial: "value-1" },
    );
    expect([values.length, values[0], total, hasMore]).toEqual([100, "value-1", 111, true]);
  });

  test("choices with titles are described", async () => {
    const schema = {
      oneOf: [
        { const: "de", title: "German" },
        { const: "fr", title: "French" },
      ],
    };
    expect((await completeWithDescriptions(schema)).suggestions).toEqual([
      { value: "de", description: "German" },
      { value: "fr", description: "French" },
    ]);
  });

  test("default and examples may point at what is there already", async () => {
    const schema = {
      type: "object",
      properties: { target: { type: "string", examples: ["$.source", "$.project", "$.nowhere"] } },
    };
    const request = { argument: "target", arguments: { source: "a.txt" }, context: { project: "atlas" } };
    // A literal may look like a reference (a JSON path does), so it is offered too.
    expect(await valuesOf(schema, request)).toEqual(["a.txt", "$.source", "atlas", "$.project", "$.nowhere"]);
  });
});

describe("numbers", () => {
  test.each<[string, JsonSchema, string, string[], boolean]>([
    ["all when few", { type: "integer", minimum: 1, maximum: 5 }, "", ["1", "2", "3", "4", "5"], false],
    [
      "multiples",
      { type: "integer", minimum: -20, maximum: 20, multipleOf: 7 },
      "",
      ["-14", "-7", "0", "7", "14"],
      false,
    ],
    ["ends left out", { type: "integer", exclusiveMinimum: 0, exclusiveMaximum: 4 }, "", ["1", "2", "3"], false],
    ["no number between the ends", { type: "integer", exclusiveMinimum: 0, exclusiveMaximum: 1 }, "", [], false],
    [
      "round ones from end to end",
      { type: "integer", minimum: 1, maximum: 65535 },
      "",
      ["1", "10000", "20000", "30000", "40000", "50000", "60000", "65535"],
      true,
    ],
    [
      "decimals",
      { type: "number", minimum: 0, maximum: 0.5 },
      "",
      ["0", "0.05", "0.1", "0.15", "0.2", "0.25", "0.3", "0.35", "0.4", "0.45", "0.5"],
      true,
    ],
    [
      "decimals with the ends left out",
      { type: "number", exclusiveMinimum: 0, exclusiveMaximum: 1 },
      "0.",
      expect.arrayContaining(["0.1", "0.9"]),
      true,
    ],
    ["an open end", { type: "integer", minimum: 10 }, "", ["10", "11", "12", "15", "20", "30", "60", "110"], true],
    [
      "an open beginning",
      { type: "integer", maximum: 0, multipleOf: 10 },
      "",
      ["0", "-10", "-20", "-50", "-100", "-200", "-500", "-1000"],
      true,
    ],
    [
      "multiples alone",
      { type: "integer", multipleOf: 15 },
      "",
      ["0", "15", "30", "75", "150", "300", "750", "1500"],
      true,
    ],
    [
      "digits are continued",
      { type: "integer", minimum: 1, maximum: 65535 },
      "80",
      expect.arrayContaining(["80", "800", "809"]),
      true,
    ],
    [
      "digits are continued past a gap",
      { type: "integer", minimum: 5000, maximum: 6000 },
      "5",
      expect.arrayContaining(["5000", "5001"]),
      true,
    ],
    [
      "below zero",
      { type: "integer", minimum: -500, maximum: 0 },
      "-4",
      expect.arrayContaining(["-4", "-40", "-49"]),
      true,
    ],
    ["nothing to go by", { type: "integer" }, "", [], false],
    ["upside down", { type: "integer", minimum: 5, maximum: 1 }, "", [], false],
    ["no digits", { type: "integer", minimum: 0, maximum: 1000 }, "x", [], false],
  ])("%s", async (_title, schema, partial, expected, isSampled) => {
    const { values, hasMore } = await complete(schema, { partial });
    expect(values).toEqual(expected);
    expect(hasMore).toBe(isSampled);
  });

  test("a library's limits for “any integer” are no range to sample", async () => {
    expect(await valuesOf(z.toJSONSchema(z.int()) as JsonSchema)).toEqual([]);
    expect(await valuesOf(z.toJSONSchema(z.int().min(1)) as JsonSchema)).toEqual([
      "1",
      "2",
      "3",
      "6",
      "11",
      "21",
      "51",
      "101",
    ]);
  });
});

describe("names", () => {
  const schema = {
    type: "object",
    properties: {
      verbose: { type: "boolean" },
      file: { type: "string", description: "Path of the note" },
      options: {
        type: "object",
        properties: { format: { enum: ["pdf", "txt"] }, force: { type: "boolean" } },
        required: ["force"],
      },
      pages: { type: "array", items: { $ref: "#/$defs/page" } },
      hidden: false,
    },
    required: ["file"],
    $defs: {
      page: {
        type: "object",
        properties: { title: { type: "string" }, tags: { type: "array", items: { enum: ["a", "b"] } } },
      },
    },
  };

  test("the required ones first, those already given left out", async () => {
    expect(await valuesOf(schema)).toEqual(["file", "verbose", "options", "pages"]);
    expect(await valuesOf(schema, { arguments: { file: "a.md", pages: [] } })).toEqual(["verbose", "options"]);
  });

  test.each([
    ["options.fo", ["options.force", "options.format"]],
    ["options.form", ["options.format"]],
    ["options.", ["options.force", "options.format"]],
    ["options.FORM", ["options.format"]],
    ["options.frmt", ["options.format"]],
    ["pages[0].ti", ["pages[0].title"]],
    ["ve", ["verbose"]],
    ["nothing.fo", []],
    ["options", ["options"]],
  ])("%s", async (partial, expected) => {
    expect(await valuesOf(schema, { partial })).toEqual(expected);
  });

  test("inside, those already given are left out too", async () => {
    expect(await valuesOf(schema, { partial: "options.", arguments: { options: { force: true } } })).toEqual([
      "options.format",
    ]);
    expect(
      await valuesOf(schema, { partial: "pages[1].", arguments: { pages: [{ title: "x" }, { tags: [] }] } }),
    ).toEqual(["pages[1].title"]);
  });

  test("names with dots in them, and the keys of a record", async () => {
    expect(
      await valuesOf(
        { type: "object", properties: { "log.level": {}, log: { type: "object", properties: { file: {} } } } },
        { partial: "log." },
      ),
    ).toEqual(["log.level", "log.file"]);
    expect(await valuesOf(z.toJSONSchema(z.record(z.enum(["x", "y"]), z.number())) as JsonSchema)).toEqual(["x", "y"]);
  });

  test("what is given decides between alternatives", async () => {
    const either = {
      type: "object",
      oneOf: [
        { properties: { kind: { const: "file" }, path: { type: "string" } }, required: ["kind"] },
        { properties: { kind: { const: "url" }, address: { type: "string" } }, required: ["kind"] },
      ],
    };
    expect(await valuesOf(either)).toEqual(["kind", "path", "address"]);
    expect(await valuesOf(either, { arguments: { kind: "url" } })).toEqual(["address"]);
    expect(await valuesOf(either, { argument: "kind" })).toEqual(["file", "url"]);
    expect(await valuesOf(either, { argument: "kind", arguments: { kind: "url" } })).toEqual(["file", "url"]);
  });

  test("they come with their descriptions", async () => {
    expect((await completeWithDescriptions(schema, { partial: "f" })).suggestions).toEqual([
      { value: "file", description: "Path of the note" },
    ]);
  });
});

describe("one argument", () => {
  const schema = {
    type: "object",
    properties: {
      format: { enum: ["pdf", "docx", "txt"] },
      tags: { type: "array", items: { enum: ["red", "green", "blue"] }, uniqueItems: true, maxItems: 3 },
      sizes: { type: "array", items: { type: "integer", minimum: 1, maximum: 3 } },
      pair: { type: "array", prefixItems: [{ const: "x" }, { type: "boolean" }], items: false },
      shown: { type: "array", items: { type: "string" }, examples: [["one", "two"]], default: ["three"] },
      options: { type: "object", properties: { level: { enum: ["low", "high"] } }, required: ["level"] },
      "a.b": { const: "dotted" },
    },
    patternProperties: { "^x-": { type: "boolean" } },
  };
  const at = (argument: string, request: CompletionRequest = {}) => valuesOf(schema, { ...request, argument });

  test("by its name or its path", async () => {
    expect(await at("format", { partial: "d" })).toEqual(["docx"]);
    expect(await at("options.level")).toEqual(["low", "high"]);
    expect(await at("options")).toEqual(["level"]);
    expect(await at("a.b")).toEqual(["dotted"]);
    expect(await at("x-anything")).toEqual(["true", "false"]);
  });

  test("an item of a list: those it has are left out where they are unique", async () => {
    expect(await at("tags")).toEqual(["red", "green", "blue"]);
    expect(await at("tags", { arguments: { tags: ["green"] } })).toEqual(["red", "blue"]);
    expect(await at("tags", { arguments: { tags: ["red", "green", "blue"] } })).toEqual([]);
    expect(await at("tags[1]", { partial: "g" })).toEqual(["green"]);
    expect(await at("sizes", { arguments: { sizes: [1] } })).toEqual(["1", "2", "3"]);
    expect(await at("pair")).toEqual(["x"]);
    expect(await at("pair", { arguments: { pair: ["x"] } })).toEqual(["true", "false"]);
    expect(await at("pair", { arguments: { pair: ["x", true] } })).toEqual([]);
    expect(await at("shown")).toEqual(["three", "one", "two"]);
  });

  test("one that is not there is a failure, not an empty list", async () => {
    const failed = await complete(schema, { argument: "fromat" }).catch((error: unknown) => error);
    expect(failed).toBeInstanceOf(CompletionFailed);
    expect(failed).toMatchObject({
      code: "completion_failed",
      fault: "argument",
      argument: "fromat",
      reason: "there is no such argument; did you mean format?",
    });
    for (const argument of ["options.nothing", "format.inside", "tags.x", "__proto__", "constructor", "a..b", ""]) {
      await expect(complete(schema, { argument }), argument).rejects.toMatchObject({ fault: "argument" });
    }
  });

  test("where anything may stand, nothing is known", async () => {
    expect(await valuesOf({ type: "object", additionalProperties: true }, { argument: "free" })).toEqual([]);
    expect(await valuesOf({ type: "object", additionalProperties: { type: "boolean" } }, { argument: "free" })).toEqual(
      ["true", "false"],
    );
  });
});

describe("texts", () => {
  const clock = new FakeClock(Date.UTC(2026, 6, 28));
  const textsOf = async (schema: JsonSchema, partial = "") => (await complete(schema, { partial }, { clock })).values;

  test("of a pattern: valid, at least three, and continued", async () => {
    const schema = { type: "string", pattern: "^[A-Z]{2}-\\d{3}$" };
    expect(await textsOf(schema)).toEqual(["AA-000", "AA-001", "AA-002", "AA-003", "AA-004"]);
    expect(await textsOf(schema, "DE-")).toEqual(["DE-000", "DE-001", "DE-002", "DE-003", "DE-004"]);
    expect(await complete(schema, { partial: "DE-70" })).toMatchObject({ total: 10, hasMore: false });
    expect(await textsOf(schema, "de")).toEqual([]);
  });

  test("a pattern with few texts is as good as an enum", async () => {
    const schema = { type: "string", pattern: "^(Dev|Staging|Prod)$" };
    expect(await complete(schema)).toEqual({ values: ["Dev", "Prod", "Staging"], total: 3, hasMore: false });
    expect(await textsOf(schema, "st")).toEqual(["Staging"]);
    expect(await textsOf(schema, "pd")).toEqual(["Prod"]);
  });

  test.each([
    ["date", "", ["2026-07-28", "2026-01-01", "2026-12-31"]],
    ["date", "2027-1", ["2027-10-01", "2027-10-02", "2027-10-03", "2027-10-04", "2027-10-05"]],
    ["date-time", "", ["2026-07-28T00:00:00Z", "2026-01-01T00:00:00Z", "2026-12-31T23:59:59Z"]],
    ["time", "12", ["12:00:00Z", "12:00:01Z", "12:00:02Z", "12:00:03Z", "12:00:04Z", "12:00:05Z"]],
    ["email", "ann", ["ann@example.com", "ann@example.org", "ann@example.net"]],
    ["email", "ann@example.o", ["ann@example.org"]],
    ["ipv4", "10.1.", ["10.1.0.0", "10.1.0.1", "10.1.0.2", "10.1.0.3", "10.1.0.4"]],
    ["uri", "https://example.c", ["https://example.com/"]],
    ["hostname", "loc", ["localhost"]],
  ])("of the format %s, typed %j", async (format, partial, expected) => {
    expect(await textsOf({ type: "string", format }, partial)).toEqual(expect.arrayContaining(expected.slice(0, 3)));
  });

  const isHost = (text: string) =>
    /^[a-z0-9-]+(\.[a-z0-9-]+)*$/.test(text) &&
    text.split(".").every((label) => label.length < 64 && !/^-|-$/.test(label));
  const isDate = (text: string) => new Date(`${text}T00:00:00Z`).toISOString().startsWith(text);
  const isTime = (text: string) => Number.isFinite(Date.parse(`2026-01-01T${text}`));
  const isUrl = (text: string) => URL.canParse(text);
  const isPath = (text: string) => URL.canParse(text, "https://example.com/");
  const isMail = (text: string) => /^[\w.+-]+@/.test(text) && isHost(text.slice(text.indexOf("@") + 1));

  test.each<[string, (text: string) => boolean, string[]]>([
    ["date", isDate, ["", "2", "1999-1", "2024-02-2"]],
    ["time", isTime, ["", "0", "23:5", "12:00:00."]],
    ["date-time", (text) => isDate(text.slice(0, 10)) && isTime(text.slice(11)), ["", "2030", "2030-05-05T1"]],
    ["duration", (text) => /^P(\d+[DWMY]|T\d+[HMS])$/.test(text), ["", "P", "PT9"]],
    ["email", isMail, ["", "ann", "ann.b@", "ann@mail."]],
    ["idn-email", isMail, ["", "x"]],
    ["hostname", isHost, ["", "db", "my-", "my.db."]],
    ["ipv4", isIPv4, ["", "1", "25", "10.0.", "255.255.255.2"]],
    ["ipv6", isIPv6, ["", "f", "2001:"]],
    ["uri", isUrl, ["", "h", "https://", "https://my.host/a?b=1", "ftp://x:2"]],
    ["iri", isUrl, ["", "https://a"]],
    ["uri-reference", isPath, ["", "/a"]],
    ["uri-template", (text) => isPath(text.replaceAll(/[{}]/g, "")), ["", "/a"]],
    ["uuid", (text) => /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/.test(text), ["", "a", "12345678-1"]],
    ["json-pointer", (text) => text.startsWith("/"), ["", "/a"]],
    ["relative-json-pointer", (text) => /^\d+(#|(\/.*)*)$/.test(text), ["", "1"]],
    ["regex", (text) => new RegExp(text, "u").source !== "", ["", "^"]],
  ])("of the format %s: valid ones, at least three", async (format, isValid, typed) => {
    for (const partial of typed) {
      const texts = await textsOf({ type: "string", format }, partial);
      for (const text of texts) expect([text, isValid(text), text.startsWith(partial)]).toEqual([text, true, true]);
      if (partial === "") expect(texts.length).toBeGreaterThanOrEqual(3);
      else expect(texts.length).toBeGreaterThan(0);
    }
  });

  test("of a format and a pattern together", async () => {
    expect(await textsOf({ type: "string", format: "email", pattern: "@corp\\.example$" })).toContain("a@corp.example");
    for (const schema of [z.email(), z.uuid(), z.iso.date(), z.iso.datetime(), z.ipv4(), z.ipv6()]) {
      const texts = await textsOf(z.toJSONSchema(schema) as JsonSchema);
      expect(texts.length).toBeGreaterThanOrEqual(3);
      for (const text of texts) expect(schema.safeParse(text).success, text).toBe(true);
    }
  });
});

describe("a schema that is none", () => {
  test.each<[string, unknown]>([
    ["not an object", "text"],
    ["no list where one belongs", { enum: "red" }],
    ["no pattern", { type: "string", pattern: "(" }],
    ["a reference to nowhere", { $ref: "#/$defs/none" }],
    ["a reference elsewhere", { $ref: "https://example.com/schema" }],
    ["a reference into the prototype", { $ref: "#/$defs/constructor", $defs: {} }],
    ["properties that are none", { type: "object", properties: ["a"] }],
  ])("%s", async (_title, schema) => {
    await expect(complete(schema as JsonSchema)).rejects.toMatchObject({
      name: "CompletionFailed",
      code: "completion_failed",
      fault: "schema",
    });
  });
});
