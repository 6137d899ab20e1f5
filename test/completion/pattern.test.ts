import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { CompletionFailed } from "../../src/completion/completion-failed.ts";
import { readPattern } from "../../src/completion/pattern.ts";
import { matchProgram } from "../../src/completion/pattern-match.ts";
import { compileProgram, loadParser, parsePattern } from "../../src/completion/pattern-program.ts";
import type { MakeRequest } from "../../src/completion/pattern-texts.ts";
import { rounds } from "../helpers/rounds.ts";

await loadParser();
fc.configureGlobal({ seed: 20260728 });

const make = (pattern: string, request: Partial<MakeRequest> = {}) =>
  readPattern(pattern).make({ partial: "", minLength: 0, maxLength: Number.POSITIVE_INFINITY, few: 100, ...request });

/** Patterns of every construct that is read, over few letters, so that texts match often. */
const { pattern: anyPattern } = fc.letrec<{ pattern: string; atom: string }>((tie) => ({
  pattern: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    fc.constantFrom("a", "b", "ab", "."),
    tie("atom"),
    fc
      .tuple(tie("atom"), fc.constantFrom("*", "+", "?", "{2}", "{1,2}", "{2,}", "*?", "+?", "??"))
      .map(([atom, count]) => `${atom}${count}`),
    fc.tuple(tie("pattern"), tie("pattern")).map(([one, other]) => one + other),
    fc.tuple(tie("pattern"), tie("pattern")).map(([one, other]) => `${one}|${other}`),
  ),
  atom: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom(
      "a",
      "b",
      "[ab]",
      "[^a]",
      "\\d",
      "\\w",
      "\\W",
      "[a-c1]",
      "\\s",
      "\\u{61}",
      "\\x62",
      "\\p{L}",
      "[^\\d\\s]",
      "é",
      "\\.",
      "-",
    ),
    tie("pattern").map((inner) => `(?:${inner})`),
    tie("pattern").map((inner) => `(${inner})`),
    tie("pattern").map((inner) => `(?:^${inner}$)`),
    tie("pattern").map((inner) => `(?:(?=${inner}))`),
    tie("pattern").map((inner) => `(?:(?!${inner}))`),
    tie("pattern").map((inner) => `(?:(?<=${inner}))`),
    tie("pattern").map((inner) => `(?:(?<!${inner}))`),
    fc.constantFrom("(?:\\b)", "(?:\\B)", "(?:^)", "(?:$)"),
  ),
}));

// No surrogate pairs: V8 takes \B to hold inside one.
const anyText = fc.string({ unit: fc.constantFrom("a", "b", "c", "1", " ", "-", "é"), maxLength: 8 });

describe("matching", () => {
  test("it says what RegExp says", () => {
    fc.assert(
      fc.property(anyPattern, anyText, (pattern, text) => {
        expect(readPattern(pattern).matches(text)).toBe(new RegExp(pattern, "u").test(text));
      }),
      { numRuns: 500 * rounds.propertyFactor },
    );
  });

  test("it says what RegExp says where a pattern asks for the text of an earlier group", () => {
    const body = anyPattern
      .map((inner) => [`^(${inner})\\1$`, `(${inner})*x?\\1`, `(?<name>${inner})-\\k<name>`, `(?<=\\1(${inner}))b`])
      .chain((all) => fc.constantFrom(...all));
    fc.assert(
      fc.property(body, anyText, (pattern, text) => {
        // More steps than a pattern is given: trying all ways is what such a pattern takes.
        expect(matchProgram(compileProgram(parsePattern(pattern, true)), text, { left: 20_000_000 })).toBe(
          new RegExp(pattern, "u").test(text),
        );
      }),
      { numRuns: 400 * rounds.propertyFactor },
    );
  });

  test.each([
    ["^\\_\\-$", "_-"],
    ["^a{,2}$", "a{,2}"],
    ["^]$", "]"],
  ])("%s is valid only without the flag u, and read without it", (pattern, text) => {
    expect(() => new RegExp(pattern, "u")).toThrow(SyntaxError);
    expect(readPattern(pattern).matches(text)).toBe(true);
  });

  test("a character is a whole one", () => {
    expect(readPattern("^.$").matches("😀")).toBe(true);
    expect(readPattern("^[\\u{1F600}-\\u{1F64F}]$").matches("😀")).toBe(true);
    expect(readPattern("^\\uD83D\\uDE00$").matches("😀")).toBe(true);
  });

  test("what is no pattern fails, what cannot be read tells nothing", () => {
    expect(() => readPattern("(")).toThrow(CompletionFailed);
    for (const pattern of ["(?:a{1000}){1000}", "a".repeat(5000), "(?=".repeat(1000) + ")".repeat(1000)]) {
      expect(readPattern(pattern).matches("a")).toBeUndefined();
      expect(make(pattern)).toEqual({ texts: [], isAll: false });
    }
  });
});

describe("making", () => {
  test("every text made matches the real RegExp, begins with what was typed, and is made again", () => {
    fc.assert(
      fc.property(
        anyPattern,
        fc.constantFrom("", "a", "ab", "1"),
        fc.nat({ max: 3 }),
        (pattern, partial, minLength) => {
          const made = make(pattern, { partial, minLength });
          for (const text of made.texts) {
            expect(text).toMatch(new RegExp(pattern, "u"));
            expect(text.startsWith(partial) && Array.from(text).length >= minLength).toBe(true);
          }
          expect(new Set(made.texts).size).toBe(made.texts.length);
          expect(make(pattern, { partial, minLength })).toEqual(made);
        },
      ),
      { numRuns: 150 * rounds.propertyFactor },
    );
  });

  test.each([
    ["^[a-z_]+$", ["example", "example_name", "snake_case", "a", "b"]],
    ["^v\\d+\\.\\d+$", ["v0.0", "v0.1", "v0.2", "v0.3", "v0.4"]],
    [
      "^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$",
      expect.arrayContaining(["00000000-0000-4000-8000-000000000000"]),
    ],
    ["\\.md$", [".md", "a.md", "b.md", "c.md", "d.md"]],
    ["^(\\w+)-\\1$", ["a-a", "b-b", "c-c", "d-d", "e-e"]],
    ["^(?=.*\\d)(?=.*[A-Z])[A-Za-z\\d]{8,}$", expect.arrayContaining(["AAAAAAA0"])],
    ["(?<=\\$)\\d+$", ["$0", "$1", "$2", "$3", "$4"]],
    ["^\\p{Lu}\\p{Ll}{2,4}$", expect.arrayContaining(["Aaa"])],
  ])("%s has at least three", (pattern, expected) => {
    const { texts, isAll } = make(pattern);
    expect(texts).toEqual(expected);
    expect(texts.length).toBeGreaterThanOrEqual(3);
    expect(isAll).toBe(false);
  });

  test("few texts are all listed", () => {
    expect(make("^(dev|staging|prod)(-[12])?$")).toEqual({
      texts: ["dev", "prod", "dev-1", "dev-2", "prod-1", "prod-2", "staging", "staging-1", "staging-2"],
      isAll: true,
    });
    expect(make("^[a-z]$").texts).toHaveLength(26);
    expect(make("^$")).toEqual({ texts: [""], isAll: true });
    expect(make("^(?!)$")).toEqual({ texts: [], isAll: true });
  });

  test("what was typed is continued", () => {
    expect(make("^v\\d+\\.\\d+$", { partial: "v1" }).texts.slice(0, 3)).toEqual(["v1.0", "v1.1", "v1.2"]);
    expect(make("\\.md$", { partial: "notes" }).texts[0]).toBe("notes.md");
    expect(make("^[a-z]+$", { partial: "x".repeat(1000) }).texts[0]).toBe("x".repeat(1000));
    expect(make("^[a-z]+$", { partial: "A" }).texts).toEqual([]);
  });

  test("lengths hold", () => {
    expect(make("^[a-z]+$", { minLength: 12 }).texts[0]).toBe("a".repeat(12));
    expect(make("^[a-z]+$", { maxLength: 1 }).texts).toHaveLength(26);
    expect(make("^[a-z]{5}$", { maxLength: 4 }).texts).toEqual([]);
  });
});

describe("hostile patterns", () => {
  const hostile = [
    "^(a+)+$",
    "^(a|aa)+$",
    "^(a|a)*$",
    "(x+x+)+y",
    "^(([a-z])+.)+[A-Z]([a-z])+$",
    "(.*)*(.*)*(.*)*z",
    "^(?=(a+)+$)(a*)*b$",
    "^(a*)*\\1b$",
    "(a?){50}a{50}$",
  ];

  test.each(hostile)("%s is answered, match or not", (pattern) => {
    for (const text of ["a".repeat(30), `${"a".repeat(30)}!`, "a".repeat(1000), `${"x".repeat(500)}!`]) {
      const start = performance.now();
      readPattern(pattern).matches(text);
      make(pattern, { partial: text });
      // Each is cut off by its steps at some 20 ms; without them some would take years.
      expect(performance.now() - start).toBeLessThan(30_000);
    }
  });
});
