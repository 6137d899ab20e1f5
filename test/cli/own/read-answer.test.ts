import { expect, test } from "vitest";
import { readAnswer } from "../../../src/cli/own/read-answer.ts";
import { toQuestion } from "../../../src/command/foreign-question.ts";
import { openTerminalHere } from "../../helpers/terminal.ts";

const link = toQuestion({
  method: "elicitation/create",
  params: { mode: "url", message: "Sign in:", url: "https://example.com/in\u001b[2J" },
});

test("a link is accepted with yes, once it was opened, and refused with no", async () => {
  const { terminal } = openTerminalHere();
  expect(await readAnswer(link, ["yes"], terminal)).toEqual({ action: "accept", content: {} });
  expect(await readAnswer(link, ["no"], terminal)).toEqual({ action: "decline" });
});

test.each([[[]], [["confirm=true"]], [["yes", "no"]]])(
  "anything else for a link is refused with the link itself: %j",
  async (words) => {
    const { terminal } = openTerminalHere();
    const refused = await readAnswer(link, words, terminal).catch((error: Error) => error.message);
    expect(refused).toMatch(
      /^It asks «Sign in: https:\/\/example\.com\/in.*»: open the link, then answer with yes, or with no\.$/,
    );
    expect(refused).not.toContain("\u001b");
  },
);

test("a form of somebody else's is answered by its fields, and what is none has none", async () => {
  const { terminal } = openTerminalHere();
  const requestedSchema = { type: "object", properties: { name: { type: "string" } } };
  const form = toQuestion({ method: "elicitation/create", params: { message: "Who?", requestedSchema } });
  expect(await readAnswer(form, ["name=Ada"], terminal)).toEqual({ action: "accept", content: { name: "Ada" } });
  for (const odd of ["text", undefined, { properties: "text" }, { properties: [1] }]) {
    const { schema } = toQuestion({ method: "elicitation/create", params: { message: "Who?", requestedSchema: odd } });
    expect(schema).toEqual({ type: "object", properties: {} });
  }
});

test.each([
  ["yes", true],
  ["Yes", true],
  ["true", true],
  ["no", false],
  ["false", false],
  ["maybe", "maybe"],
])("a boolean field takes yes and no, as in the form: %s", async (word, send) => {
  const { terminal } = openTerminalHere();
  const schema = { type: "object", properties: { send: { type: "boolean" } } };
  const question = { message: "Send it?", isConfirmation: false, schema };
  expect(await readAnswer(question, [`send=${word}`], terminal)).toEqual({ action: "accept", content: { send } });
});
