import { describe, expect, test } from "vitest";
import { fieldsOf, notesOf, refuseText } from "../../../src/cli/screens/question-fields.ts";

const field = (schema: Record<string, unknown>, isRequired = true) =>
  fieldsOf({ type: "object", properties: { x: schema }, ...(isRequired && { required: ["x"] }) })[0] ??
  expect.fail("no field");

describe("what a person is told before typing", () => {
  test.each([
    [{ type: "string" }, true, ""],
    [{ type: "string", minLength: 1 }, true, ""],
    [{ type: "string", minLength: 3, maxLength: 8 }, true, " (3 to 8 characters)"],
    [{ type: "string", maxLength: 8 }, false, " (at most 8 characters; Enter leaves it out)"],
    [{ type: "string", default: "Q3" }, false, " (Enter takes Q3)"],
    [{ type: "string", format: "email" }, true, " (an e-mail address)"],
    [{ type: "integer", minimum: -9007199254740991, maximum: 9007199254740991 }, true, " (a whole number)"],
    [{ type: "integer", minimum: 1, maximum: 10, default: 5 }, false, " (a whole number from 1 to 10; Enter takes 5)"],
    [{ type: "number", minimum: 0 }, true, " (a number at least 0)"],
    [{ type: "string", enum: ["a", "b"] }, true, ""],
    [{ type: "boolean" }, false, ""],
    [{ type: "string", default: "a\x1b[2J" }, false, " (Enter takes a [2J)"],
  ])("%j, required: %s", (schema, isRequired, notes) => {
    expect(notesOf(field(schema, isRequired))).toBe(notes);
  });
});

describe("what was typed is held to the limits at once", () => {
  test.each([
    [{ type: "string" }, "", "An answer is needed."],
    [{ type: "string", default: "x" }, "", undefined],
    [{ type: "string", minLength: 3 }, "ab", "At least 3 characters, please."],
    [{ type: "string", maxLength: 2 }, "😀😀", undefined],
    [{ type: "integer", minimum: 1, maximum: 10 }, "11", "A whole number from 1 to 10, please."],
    [{ type: "integer" }, "1.5", "A whole number, please."],
    [{ type: "number" }, "ten", "A number, please."],
    [{ type: "number" }, " ", "A number, please."],
    [{ type: "number", minimum: 0 }, "0", undefined],
  ])("%j: %j", (schema, text, sentence) => {
    expect(refuseText(text, field(schema))).toBe(sentence);
  });

  test("what is optional may be left out", () => {
    expect(refuseText("", field({ type: "integer", minimum: 1 }, false))).toBeUndefined();
  });
});
