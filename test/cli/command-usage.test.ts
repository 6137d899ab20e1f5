import { describe, expect, test } from "vitest";
import { z } from "zod";
import { commandHelp, parseTyped } from "../../src/cli/command-usage.ts";
import { formatData } from "../../src/cli/screens/output.ts";
import { type Command, defineCommand } from "../../src/command/command.ts";
import { content } from "../../src/command/content.ts";
import { type JsonObject, toForeignCommand } from "../../src/command/foreign.ts";

const entryOf = (command: Command) => ({ command, toolName: "report_build", path: ["report", "build"], file: "x.ts" });
const build = defineCommand({
  summary: "Build the quarterly report",
  description: "Use it at the end of a quarter.",
  input: z.object({
    quarter: z.string().describe("Which quarter, e.g. Q3"),
    format: z.enum(["pdf", "html"]).default("pdf").describe("Output format"),
    maxPages: z.number().int().optional().describe("Stop after this many"),
    tags: z.array(z.string()).default([]),
    draft: z.boolean().default(false).describe("Mark as draft"),
    cover: z.boolean().default(true).describe("With a cover"),
    filter: z.object({ region: z.string() }).optional(),
    limit: z.number().nullable().optional(),
    json: z.string().optional().describe("A name that is ours too"),
  }),
  examples: ["Q3 --format html"],
  run: () => ({}),
});
const parse = (...words: string[]) => parseTyped(entryOf(build), words);
const input = (...words: string[]) => parse(...words).input;

describe("words become input", () => {
  test("required properties are positional, the rest are flags", () => {
    expect(input("Q3", "--format", "html", "--max-pages", "12")).toEqual({
      quarter: "Q3",
      format: "html",
      maxPages: 12,
    });
  });

  test("optional ones stand without their names where the command says so, behind the required ones, and with them too", () => {
    const show = defineCommand({
      summary: "x",
      input: z.object({
        section: z.string().default(""),
        list: z.array(z.string()).default([]),
        page: z.number().default(1),
        name: z.string(),
      }),
      positional: ["page", "list"],
      run: () => ({}),
    });
    const typed = (...words: string[]) => parseTyped(entryOf(show), words).input;
    expect(typed("a")).toEqual({ name: "a" });
    expect(typed("a", "2", "x", "y")).toEqual({ name: "a", page: 2, list: ["x", "y"] });
    expect(typed("a", "--page", "2", "--section", "s")).toEqual({ name: "a", page: 2, section: "s" });
    expect(commandHelp(entryOf(show))).toContain("Usage: meanwhile report build <name> [page] [list...] [options]\n");
  });

  test("what was not typed is left to the schema's defaults", () => {
    expect(input("Q3")).toEqual({ quarter: "Q3" });
  });

  test("switches can be turned on and off, lists repeat, objects are JSON", () => {
    expect(
      input("Q3", "--draft", "--no-cover", "--tags", "a", "--tags", "b", "--filter", '{"region":"north"}'),
    ).toEqual({
      quarter: "Q3",
      draft: true,
      cover: false,
      tags: ["a", "b"],
      filter: { region: "north" },
    });
  });

  test("numbers are numbers, also negative and nullable ones; what is none stays text for the schema to refuse", () => {
    expect(input("Q3", "--max-pages", "-5", "--limit", "2.5")).toMatchObject({ maxPages: -5, limit: 2.5 });
    expect(input("Q3", "--max-pages", "many")).toMatchObject({ maxPages: "many" });
    expect(input("-3")).toEqual({ quarter: "-3" });
  });

  test("a property that is called like one of our own flags gets arg- in front", () => {
    expect(parse("Q3", "--arg-json", "x", "--json")).toMatchObject({ input: { quarter: "Q3", json: "x" }, json: true });
  });

  test("words that would mean something else, or the same as another's, get arg- in front too", () => {
    const command = defineCommand({
      summary: "x",
      input: z.object({
        cache: z.boolean().default(true),
        noCache: z.boolean().default(false),
        dryRun: z.boolean().default(false),
        dry_run: z.string().optional(),
        "a--b": z.string().optional(),
      }),
      run: () => ({}),
    });
    const read = (...words: string[]) => parseTyped(entryOf(command), words).input;
    expect(read("--no-cache")).toEqual({ cache: false });
    expect(read("--arg-no-cache")).toEqual({ noCache: true });
    expect(read("--dry-run", "--arg-dry-run", "x", "--a-b", "y")).toEqual({ dryRun: true, dry_run: "x", "a--b": "y" });
  });

  test("a positional may be given by name, a switch by true and false, and behind -- everything is an argument", () => {
    expect(input("--quarter", "Q3")).toEqual({ quarter: "Q3" });
    expect(input("Q3", "--draft=true", "--cover=false")).toEqual({ quarter: "Q3", draft: true, cover: false });
    expect(input("--", "--help")).toEqual({ quarter: "--help" });
  });

  test("a required list takes what is left", () => {
    const command = defineCommand({
      summary: "x",
      input: z.object({ engine: z.string(), files: z.array(z.string()) }),
      run: () => ({}),
    });
    expect(parseTyped(entryOf(command), ["text", "a.md", "b.md"]).input).toEqual({
      engine: "text",
      files: ["a.md", "b.md"],
    });
  });

  test("a wrong word is named, with what was meant and where to read on", () => {
    expect(() => parse("Q3", "--formt", "html")).toThrow(
      "Unknown option '--formt'; did you mean --format?\n  See: meanwhile report build --help",
    );
    expect(() => parse("Q3", "Q4")).toThrow(/Too many arguments.*\n {2}See: meanwhile report build --help/);
    expect(() => parse("Q3", "--format")).toThrow("Option '--format <format>' argument missing.");
  });
});

describe("a tool of somebody else's", () => {
  const theirs = (inputSchema: unknown, description?: string) => {
    const listing = { name: "x", description, inputSchema } as JsonObject;
    return entryOf(toForeignCommand({ listing, call: async () => ({}) }, {}, defineCommand));
  };

  test.for([
    { type: "object", properties: { a: null } },
    { type: "object", properties: "none", required: 7 },
    { type: "object", properties: { a: { anyOf: "x" } }, required: [{}] },
    [],
  ])("has no flags but ours where its schema makes no sense: %j", (schema) => {
    expect(commandHelp(theirs(schema))).toContain("--input <file>");
    expect(parseTyped(theirs(schema), ["--quiet"])).toMatchObject({ input: {}, quiet: true });
  });

  test("has flags for arguments of any name", () => {
    const properties = { "--x, -y <z>": { enum: ["a"] }, "\u001b[31m": { type: "string" }, ünä: { type: "boolean" } };
    const entry = theirs({ type: "object", properties });
    expect(parseTyped(entry, ["--x-y-z", "a", "--31m", "b", "--n"]).input).toEqual({
      "--x, -y <z>": "a",
      "\u001b[31m": "b",
      ünä: true,
    });
  });

  test("is described once, by all that its server says", () => {
    expect(commandHelp(theirs({}, "\nSay it.\nTwice, if need be.\n"))).toMatch(
      /^Usage: .*\n\nSay it\.\nTwice, if need be\.\n\nOptions:/,
    );
  });
});

test("help shows usage, every argument with its default, and the examples", () => {
  expect(commandHelp(entryOf(build))).toMatchInlineSnapshot(`
    "Usage: meanwhile report build <quarter> [options]

    Build the quarterly report

    Use it at the end of a quarter.

    Arguments:
      quarter               Which quarter, e.g. Q3

    Options:
      --format <format>     Output format (one of pdf, html; default "pdf")
      --max-pages <number>  Stop after this many
      --tags <value>        (default []; may be given several times)
      --draft               Mark as draft
      --no-cover            turn off: with a cover
      --filter <json>
      --limit <number>
      --arg-json <value>    A name that is ours too
      --input <file>        read the arguments from a JSON file, or - for standard
                            input
      --json                print the result as JSON
      --yaml                print the result as YAML
      --quiet               print nothing but the result
      --out <file>          write images and files of the result to this file;
                            several get numbers
      --async               run as a task that outlives this terminal, and follow it
      --detach              run as a task, print its id and leave
      --new                 as a task: start another run even if an equal one is
                            live
      --task-ttl <ms>       as a task: how long its result is kept (default 24 h)
      -h, --help            show this help

    Examples:
      $ meanwhile report build Q3 --format html
    "
  `);
});

test("--yes exists where a command asks first", () => {
  const wipe = defineCommand({ summary: "x", effects: "destroy", run: () => ({}) });
  expect(parseTyped(entryOf(wipe), ["--yes"])).toMatchObject({ yes: true });
  expect(() => parse("Q3", "--yes")).toThrow("Unknown option '--yes'");
});

describe("output", () => {
  test("text is printed as it is, data as YAML or JSON, nothing as nothing", async () => {
    expect(await formatData({ data: "hello" }, "plain")).toBe("hello\n");
    expect(await formatData({ data: { pages: 12, files: ["a"] } }, "plain")).toBe("pages: 12\nfiles:\n  - a\n");
    expect(await formatData({ data: { pages: 12 } }, "json")).toBe('{\n  "pages": 12\n}\n');
    expect(await formatData({ data: {} }, "plain")).toBe("");
    expect(await formatData({ data: {} }, "json")).toBe("{}\n");
    expect(await formatData({ data: new Date(0) }, "plain")).toBe("1970-01-01T00:00:00.000Z\n");
  });

  test("content is printed block by block; what is not text says what it is", async () => {
    const blocks = content(
      "Here it is:",
      { type: "image", data: "AAAA", mimeType: "image/png" },
      { type: "resource_link", uri: "file:///q3.pdf", name: "Q3" },
    ).blocks;
    expect(await formatData({ data: {}, content: blocks }, "plain")).toBe(
      "Here it is:\n[image/png, 3 bytes; --out <file> writes it]\nQ3: file:///q3.pdf\n",
    );
    expect(JSON.parse(await formatData({ data: {}, content: blocks }, "json"))).toEqual({ content: blocks });
  });
});
