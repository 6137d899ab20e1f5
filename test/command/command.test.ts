import { describe, expect, expectTypeOf, test } from "vitest";
import { z } from "zod";
import { defineCommand, isCommand } from "../../src/command/command.ts";
import { closest } from "../../src/command/suggest.ts";

const run = () => ({});

describe("defineCommand", () => {
  test("fills every default in once", () => {
    expect(defineCommand({ summary: " Say hello ", run })).toMatchObject({
      summary: "Say hello",
      inputSchema: { type: "object", properties: {} },
      outputSchema: undefined,
      long: false,
      effects: "write",
      idempotent: false,
      confirm: false,
      envelope: true,
    });
  });

  test("describes input and output as JSON Schema, defaults not required", () => {
    const command = defineCommand({
      summary: "x",
      input: z.object({
        quarter: z.string().describe("Which quarter"),
        format: z.enum(["pdf", "html"]).default("pdf"),
      }),
      output: z.object({ pages: z.number() }),
      run: () => ({ pages: 1 }),
    });
    expect(command.inputSchema).toEqual({
      type: "object",
      properties: {
        quarter: { type: "string", description: "Which quarter" },
        format: { type: "string", enum: ["pdf", "html"], default: "pdf" },
      },
      required: ["quarter"],
    });
    expect(command.outputSchema).toMatchObject({ type: "object", required: ["pages"] });
  });

  test("what destroys asks first, unless its author says it need not", () => {
    expect(defineCommand({ summary: "x", effects: "destroy", run }).confirm).toBe("This cannot be undone. Go ahead?");
    expect(defineCommand({ summary: "x", effects: "destroy", confirm: false, run }).confirm).toBe(false);
    expect(defineCommand({ summary: "x", confirm: "Really?", run }).confirm).toBe("Really?");
  });

  test.each([
    [{ summary: "x", run, positional: ["page"] }, "`positional` names page, which is no argument; known: "],
    [{ run }, "`summary` must be one line of text, and it is missing"],
    [{ summary: "x" }, "`run` must be a function (input, task) => result, and it is missing"],
    [{ summary: "x", run, effects: "delete" }, '`effects` must be "read", "write" or "destroy"'],
    [{ summary: "x", run, timeout: 0 }, "`timeout` must be a positive number of seconds"],
    [{ summary: "x", run, input: { name: "string" } }, "`input` must be a Standard Schema, e.g. z.object({ … })"],
    [{ summary: "x", run, input: z.string() }, "`input` must be an object schema"],
    [{ summary: "x", run, scopes: "notes:write" }, "`scopes` must be a list of scopes without spaces"],
    [{ summary: "x", run, scopes: ["notes write"] }, "`scopes` must be a list of scopes without spaces"],
    [{ summary: "x", run, timeuot: 5 }, "`timeuot` is not a field of a command; did you mean `timeout`?"],
    [{ sumary: "x", run }, "`sumary` is not a field of a command; did you mean `summary`?"],
    [{ summary: "x", run, colour: "red" }, "`colour` is not a field of a command; known: summary, run,"],
    [{ summary: "x", run, estimate: Number.NaN }, "`estimate` must be a function (input) => seconds, or => { work }"],
    [
      { summary: "x", run, aliases: "old" },
      "`aliases` must be a list of tool names, or of { name, arguments: { their_name: our_name } }",
    ],
    [
      { summary: "x", run, aliases: ["task_result"] },
      "`aliases`: task_result clashes with the tools that follow up a task (task_result, task_status, …); take another name",
    ],
    [
      { summary: "x", run, aliases: ["old name"] },
      '`aliases`: "old name" is no tool name; use letters, digits and _, a letter first',
    ],
    [{ summary: "x", run, aliases: ["old", { name: "old" }] }, "`aliases` names old twice; take one out"],
    [{ summary: "x", run, aliases: [{}] }, "`aliases`: each must be a tool name, or { name, arguments }"],
    [
      { summary: "x", run, aliases: [{ name: "old", argumnets: {} }] },
      "`aliases`: each must be a tool name, or { name, arguments }",
    ],
    [{ summary: "x", run, aliases: [7] }, "`aliases`: each must be a tool name, or { name, arguments }"],
    [{ summary: "x", run, aliases: [null] }, "`aliases`: each must be a tool name, or { name, arguments }"],
    [
      {
        summary: "x",
        run,
        input: z.object({ url: z.string() }),
        aliases: [{ name: "old", arguments: { endpoint: "uri" } }],
      },
      '`aliases`: endpoint stands for "uri", which is no argument of this command; it has url',
    ],
    [
      {
        summary: "x",
        run,
        input: z.object({ url: z.string(), to: z.string() }),
        aliases: [{ name: "old", arguments: { to: "url" } }],
      },
      "`aliases`: to is an argument of this command already; take it out of the alias",
    ],
  ])("refuses a wrong definition by field: %j", (definition, sentence) => {
    expect(() => defineCommand(definition as never)).toThrow(sentence);
  });

  test("knows its own, also from another copy of the package, and nothing else", () => {
    expect(isCommand(defineCommand({ summary: "x", run }))).toBe(true);
    expect(isCommand({ summary: "x", run })).toBe(false);
    expect(isCommand(Object.defineProperty({}, Symbol.for("meanwhile.command"), { value: true }))).toBe(true);
  });

  test("infers what run() receives and may return", () => {
    defineCommand({
      summary: "x",
      input: z.object({ value: z.string().transform(Number), unit: z.enum(["s", "ms"]).default("s") }),
      output: z.object({ ok: z.boolean().default(true) }),
      estimate: (input) => {
        expectTypeOf(input.value).toEqualTypeOf<number>();
        return 1;
      },
      run(input, task) {
        expectTypeOf(input).toEqualTypeOf<{ value: number; unit: "s" | "ms" }>();
        expectTypeOf(task.signal).toEqualTypeOf<AbortSignal>();
        expectTypeOf(task.ask("?", z.object({ yes: z.boolean() }))).resolves.toEqualTypeOf<{ yes: boolean }>();
        return {};
      },
    });
    // @ts-expect-error the output schema asks for a number
    defineCommand({ summary: "x", output: z.object({ n: z.number() }), run: () => ({ n: "one" }) });
  });
});

test("a mistyped word finds the nearest one, and only a near one", () => {
  expect(closest("biuld", ["build", "check"])).toBe("build");
  expect(closest("Report_Build", ["report_build", "report_check"])).toBe("report_build");
  expect(closest("xyz", ["build", "check"])).toBeUndefined();
  expect(closest("", ["a"])).toBe("a");
});
