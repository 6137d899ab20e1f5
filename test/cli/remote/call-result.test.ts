import { describe, expect, test } from "vitest";
import { printToolResult, type ResultOptions } from "../../../src/cli/remote/call-result.ts";
import type { ToolResult } from "../../../src/client/client.ts";
import { openTerminalHere } from "../../helpers/terminal.ts";

async function print(result: ToolResult, options: Partial<ResultOptions> & { isDataShown?: boolean } = {}) {
  const { terminal, printed, said } = openTerminalHere({ isDataShown: options.isDataShown ?? false });
  const code = await printToolResult(result, {
    terminal,
    isQuiet: false,
    format: "plain",
    name: "crawl",
    durationMs: 3400,
    ...options,
  });
  return { code, printed: printed(), said: said() };
}

const text = (...texts: string[]) => texts.map((words) => ({ type: "text", text: words }));
const envelope = (success: boolean, data: unknown, ...messages: [string, string][]) => ({
  content: [],
  ...(!success && { isError: true }),
  structuredContent: {
    success,
    data,
    messages: messages.map(([type, words]) => ({ type, text: words, timestamp: "" })),
  },
});

describe("what a tool gave", () => {
  test("by one of our own servers: its data, its summary, and what it has to say beside", async () => {
    const result = envelope(
      true,
      { pages: 12 },
      ["status", "Building"],
      ["success", "12 pages"],
      ["warning", "One was empty"],
    );
    expect(await print(result)).toEqual({ code: 0, printed: "pages: 12\n", said: "! One was empty\n✓ 12 pages\n" });
    expect(await print(result, { format: "json", isQuiet: true })).toEqual({
      code: 0,
      printed: '{\n  "pages": 12\n}\n',
      said: "",
    });
  });

  test("by any other: its structured content, or else its text", async () => {
    const said = "✓ crawl finished in 3.4 s\n";
    expect(await print({ content: text("{}"), structuredContent: { found: [1] } })).toEqual({
      code: 0,
      printed: "found:\n  - 1\n",
      said,
    });
    expect(await print({ content: text("one", "two\n") })).toEqual({ code: 0, printed: "one\ntwo\n", said });
    expect(JSON.parse((await print({ content: text("one") }, { format: "json" })).printed)).toEqual({
      content: text("one"),
    });
    expect(await print({ content: [] }, { durationMs: undefined })).toEqual({
      code: 0,
      printed: "",
      said: "✓ crawl finished\n",
    });
  });

  test("what is no text is told of beside the data, in one line each", async () => {
    const content = [
      { type: "text", text: "a picture:" },
      { type: "image", mimeType: "image/png", data: "AAAA" },
      { type: "resource", resource: { uri: "file:///a", text: "inside" } },
      { type: "resource", resource: { uri: "file:///b", blob: "AAAA" } },
      { type: "resource_link", uri: "https://c", name: "the\x1b[31m page" },
      { type: "hologram" },
    ];
    const { printed, said } = await print({ content });
    expect(printed).toBe("a picture:\ninside\n");
    expect(said.split("\n").slice(1, -1)).toEqual([
      "  [image/png, 3 bytes; --out <file> writes it]",
      "  [file:///b; --json prints it]",
      "  [the [31m page: https://c]",
      "  [hologram; --json prints it]",
    ]);
  });

  test("a program gets an error on stdout too, with the tool's own result", async () => {
    const content = text("first\n\x1b[31msecond");
    const { code, printed, said } = await print({ content, isError: true }, { format: "json" });
    expect({ code, said }).toEqual({ code: 1, said: "✗ first\n [31msecond\n" });
    expect(JSON.parse(printed)).toEqual({ content, error: { message: "first\n\x1b[31msecond", exitCode: 1 } });
    const refused = envelope(false, { free: 0 }, ["error", "No disk"]);
    const shown = JSON.parse((await print(refused, { format: "json" })).printed) as object;
    expect(shown).toEqual({
      structuredContent: refused.structuredContent,
      error: { message: "No disk", exitCode: 1 },
    });
  });

  test("an error of one of our own servers has the line of the command, where the server tells it", async () => {
    const message = { type: "error", text: "boom", timestamp: "", details: "Error: boom\nat commands/a/b.ts:4:9" };
    const structuredContent = { success: false, data: {}, messages: [message] };
    const result = { content: [], isError: true, structuredContent };
    expect(await print(result)).toEqual({ code: 1, printed: "", said: "✗ boom\n  at commands/a/b.ts:4:9\n" });
    expect(JSON.parse((await print(result, { format: "json" })).printed)).toMatchObject({
      error: { message: "boom", at: "commands/a/b.ts:4:9" },
    });
  });

  test("an error goes to stderr alone for a person, with exit code 1", async () => {
    expect(await print(envelope(false, {}, ["error", "No disk"]))).toEqual({
      code: 1,
      printed: "",
      said: "✗ No disk\n",
    });
    expect(await print({ content: [], isError: true })).toEqual({
      code: 1,
      printed: "",
      said: "✗ The tool said no, and not why.\n",
    });
  });

  test("data is cleaned for a screen, and left as it is for a pipe", async () => {
    const result = { content: text("a\x1b[31mb") };
    expect((await print(result, { isDataShown: true })).printed).toBe("a [31mb\n");
    expect((await print(result)).printed).toBe("a\x1b[31mb\n");
  });
});
