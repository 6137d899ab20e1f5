import { describe, expect, test } from "vitest";
import { failureIn, isErrorText } from "../../../src/diagnose/asking/failure.ts";

describe("a text that tells of a failure is one, whatever the fields around it say", () => {
  test.each([
    "Error: no such file",
    "error: no such file",
    "❌ Error: the key is missing",
    "### Error\nError: browserType.launch",
    "Internal server error: try again",
    "TypeError: x is not a function",
    "requests.exceptions.ConnectionError: refused",
    "Error executing tool search: timed out",
    "An error occurred while reading",
    "Failed to fetch https://example.org",
    "Unable to open the database",
    "notes.txt: Error - ENOENT: no such file or directory",
    "Traceback (most recent call last):\n  File",
    "panic: runtime error",
    '{"error":"Not found"}',
    '{"error":{"code":404,"message":"Not found"}}',
  ])("%j", (text) => {
    expect(isErrorText(text)).toBe(true);
    expect(failureIn({ content: [{ type: "text", text }] })).toBe(text);
  });

  test.each([
    "It is noon.",
    "No error: all is well",
    "There was no error in the last hour",
    "Errors: 0",
    "Error rates of the last week",
    "Log level: error",
    "The failed builds are 3 and 4.",
    '{"error":null,"data":[]}',
    '{"errors":[]}',
    "",
  ])("but not %j", (text) => {
    expect(isErrorText(text)).toBe(false);
    expect(failureIn({ content: [{ type: "text", text }] })).toBeUndefined();
  });

  test("isError is one without any text, and a text of a megabyte costs nothing", () => {
    expect(failureIn({ content: [], isError: true })).toBe("isError: true");
    expect(isErrorText("a ".repeat(500_000))).toBe(false);
    expect(isErrorText(`{"a":${"[".repeat(5_000)}`)).toBe(false);
  });
});
