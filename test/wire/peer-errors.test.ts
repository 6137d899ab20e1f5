import { expect, test } from "vitest";
import { cut } from "../../src/wire/peer-errors.ts";

test("a server's words are cut to one line of sane length", () => {
  expect(cut(`a\n\n  b${"x".repeat(1000)}`)).toMatch(/^a bx{295}x?…$/);
  expect(cut("short")).toBe("short");
});
