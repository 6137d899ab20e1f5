import { describe, expect, test } from "vitest";
import { cut, pad, widthOf, wrap } from "../../src/screen/width.ts";

describe("the places a text takes", () => {
  test.each([
    ["letters", "Grüße", 5],
    ["East Asian letters", "日本語", 6],
    ["letters of the second plane", "𠀀", 2],
    ["half-width letters", "ｶﾀｶﾅ", 4],
    ["marks that combine", "e\u0301z\u030c\u0328", 2],
    ["an emoji", "🚀", 2],
    ["a family of emoji", "👨‍👩‍👧", 2],
    ["a flag", "🇩🇪", 2],
    ["a sign shown as an emoji", "❤️", 2],
    ["a colour of skin", "👍🏽", 2],
    ["our colours", "\x1b[31mred\x1b[39m", 3],
    ["a tab", "a\tb", 3],
  ])("%s", (_title, text, width) => {
    expect(widthOf(text)).toBe(width);
    expect(widthOf(pad(text, 8))).toBe(8);
  });
});

test("what is cut or broken is no letter with its marks, and no family", () => {
  expect(cut("👨‍👩‍👧👨‍👩‍👧👨‍👩‍👧", 5)).toBe("👨‍👩‍👧👨‍👩‍👧…");
  expect(cut("ne\u0301e\u0301e\u0301", 3)).toBe("ne\u0301…");
  expect(wrap("🇩🇪🇫🇷🇮🇹 abc", 4)).toEqual(["🇩🇪🇫🇷", "🇮🇹", "abc"]);
  expect(wrap("e\u0301".repeat(5), 2)).toEqual(["e\u0301e\u0301", "e\u0301e\u0301", "e\u0301"]);
});
