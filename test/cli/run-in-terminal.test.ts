import { describe, expect, test } from "vitest";
import type { TypedCommand } from "../../src/cli/command-usage.ts";
import { runInTerminal } from "../../src/cli/run-in-terminal.ts";
import { catalogOf } from "../../src/command/catalog.ts";
import { type Command, defineCommand } from "../../src/command/command.ts";
import type { JsonObject } from "../../src/command/foreign.ts";
import { ProtocolError } from "../../src/errors.ts";
import { foreign } from "../helpers/foreign.ts";
import { openTerminalHere } from "../helpers/terminal.ts";

const facts = { home: "", config: {}, isDebug: false };
const asTyped: TypedCommand = {
  input: {},
  inputFile: undefined,
  json: false,
  yaml: false,
  quiet: false,
  yes: false,
  asTask: undefined,
  isNew: false,
  ttl: undefined,
  out: undefined,
};

async function run(command: Command, typed: Partial<TypedCommand> = {}) {
  const entry = catalogOf({ their_tool: command }).get("their_tool");
  if (entry === undefined) throw new Error("There is no such command.");
  const { terminal, printed, said } = openTerminalHere({ isDataShown: true });
  const code = await runInTerminal(entry, { ...asTyped, ...typed }, terminal, facts);
  return { code, printed: printed(), said: said().replace(/finished in [\d.]+ ?m?s/, "finished in a moment") };
}

const gives = (result: JsonObject) => foreign(async () => result);
const done = "✓ their tool finished in a moment\n";

test("of a foreign result a person is shown the data, or else what it says", async () => {
  const content = [
    { type: "text", text: "two\nlines\u001b[2J" },
    { type: "image", data: "aGk=", mimeType: "image/png" },
  ];
  expect(await run(gives({ content, structuredContent: { pages: 12 } }))).toEqual({
    code: 0,
    printed: "pages: 12\n",
    said: done,
  });
  const shown = await run(gives({ content: [...content, { type: "hologram" }, null] }));
  expect(shown).toMatchObject({ code: 0, said: done });
  expect(shown.printed).not.toContain("\u001b");
  expect(shown.printed.split("\n").slice(2)).toEqual([
    "[image/png, 2 bytes; --out <file> writes it]",
    "[--json prints it]",
    "[--json prints it]",
    "",
  ]);
});

test("a program gets the whole of a foreign result", async () => {
  const result = { content: [{ type: "text", text: "No." }], structuredContent: { a: 1 }, _meta: { b: 2 } };
  expect(await run(gives(result), { json: true, quiet: true })).toEqual({
    code: 0,
    printed: `${JSON.stringify(result, null, 2)}\n`,
    said: "",
  });
  const refusal = { ...result, isError: true };
  expect(await run(gives(refusal), { json: true })).toEqual({
    code: 1,
    printed: `${JSON.stringify({ ...refusal, error: { message: "No.", exitCode: 1 } }, null, 2)}\n`,
    said: "✗ No.\n",
  });
});

test("a foreign no is said once, in full", async () => {
  const long = `Not ${"so ".repeat(400)}much.`;
  const said = {
    content: [
      { type: "text", text: "First." },
      { type: "text", text: long },
    ],
    isError: true,
  };
  expect(await run(gives(said))).toEqual({ code: 1, printed: "", said: `✗ First.\n${long}\n` });
  expect(await run(gives({ isError: true }))).toEqual({ code: 1, printed: "", said: "✗ their tool said no.\n" });
});

test("a foreign error of the protocol is a failure with its message", async () => {
  const fails = foreign(async () => {
    throw new ProtocolError(-32_602, "There is no such page.", { page: 1 });
  });
  expect(await run(fails)).toMatchObject({
    code: 1,
    printed: "",
    said: expect.stringMatching(/^✗ There is no such page\.\n/),
  });
});

describe("retry", () => {
  const failing = (failures: number, more: object = {}) => {
    const seen: number[] = [];
    const command = defineCommand({
      summary: "Fails at first",
      retry: { attempts: 3, backoff: 0 },
      ...more,
      async run(_input, task) {
        seen.push(task.attempt);
        await task.step("once", () => void seen.push(0));
        if (task.attempt <= failures) throw new Error("no luck");
        return { attempt: task.attempt };
      },
    });
    return { command, seen };
  };

  test("a failed run is tried again; a person is told each time, and how many attempts there were", async () => {
    const { command, seen } = failing(2);
    expect(await run(command)).toEqual({
      code: 0,
      printed: "attempt: 3\n",
      said: [
        "! Attempt 1 failed (no luck); trying again in 0 s.",
        "! Running attempt 2 of 3.",
        "! Attempt 2 failed (no luck); trying again in 0 s.",
        "! Running attempt 3 of 3.",
        "✓ their tool finished in a moment (3 attempts)",
        "",
      ].join("\n"),
    });
    expect(seen, "the step runs once").toEqual([1, 0, 2, 3]);
  });

  test("a run that fails every time exits with 1 and says how often it was tried", async () => {
    const { code, said } = await run(failing(9).command, { quiet: true });
    expect([code, said.split("\n", 1)]).toEqual([1, ["✗ no luck (3 attempts)"]]);
  });
});
