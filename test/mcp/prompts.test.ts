import { expect, test } from "vitest";
import { z } from "zod";
import type { Catalog } from "../../src/command/catalog.ts";
import { defineCommand } from "../../src/command/command.ts";
import { createPrompts } from "../../src/mcp/prompts.ts";

test("what a tool takes as a text stays one in its prompt, and a number becomes one only where no text fits", async () => {
  const command = defineCommand({
    summary: "Send",
    input: z.object({
      zip: z.string().nullable(),
      code: z.union([z.string(), z.number()]),
      which: z.enum(["1", "2"]),
      count: z.number(),
      isLoud: z.boolean(),
    }),
    run: () => ({}),
  });
  const entry = { command, toolName: "mail_send", path: ["mail", "send"], file: "" };
  const prompts = createPrompts({ revision: 1, entries: [entry], get: () => entry } as unknown as Catalog);
  const given = { zip: "12345", code: "12", which: "1", count: "3", isLoud: "true" };
  const { messages } = (await prompts.get("mail_send", given)) as unknown as {
    messages: { content: { text: string } }[];
  };
  const text = messages[0]?.content.text ?? "";
  expect(JSON.parse(text.slice(text.indexOf("{")))).toEqual({
    zip: "12345",
    code: "12",
    which: "1",
    count: 3,
    isLoud: true,
  });
});
