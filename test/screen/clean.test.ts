import { describe, expect, test } from "vitest";
import { openLog } from "../../src/log.ts";
import { clean, cleanKeepingColors, cleanLines } from "../../src/screen/clean.ts";

/** Everything that moves a cursor, recolours, retitles, reaches a clipboard, or turns text around. */
const everyControl = Array.from({ length: 0xa0 }, (_, code) => String.fromCharCode(code)).filter((sign) =>
  /[\u0000-\u001f\u007f-\u009f]/.test(sign),
);
const everyTurn = [..."\u061c\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"];

describe("what others wrote", () => {
  test("is shown on one line, and never obeyed", () => {
    for (const sign of everyControl) expect(clean(`a${sign}b`), JSON.stringify(sign)).toBe("a b");
    for (const sign of everyTurn) expect(clean(`a${sign}b`), JSON.stringify(sign)).toBe("a\ufffdb");
    expect(clean("a\x1b]52;c;aGk=\x07b\x1b[31mred\r\nc\u009b2Jd")).toBe("a ]52;c;aGk= b [31mred c 2Jd");
    expect(clean("Grüße, 世界 👨‍👩‍👧 שלום")).toBe("Grüße, 世界 👨‍👩‍👧 שלום");
  });

  test("keeps its lines and tabs where it has several", () => {
    for (const sign of everyControl.filter((found) => found !== "\n" && found !== "\t"))
      expect(cleanLines(`a${sign}b`), JSON.stringify(sign)).toBe("a b");
    for (const sign of everyTurn) expect(cleanLines(`a${sign}b`), JSON.stringify(sign)).toBe("a\ufffdb");
    expect(cleanLines("a\tb\r\nc\n")).toBe("a\tb\nc\n");
  });

  test("keeps our own six colours and nothing else among our words, and those only where there are colours", () => {
    const ours = "\x1b[31m✗\x1b[39m \x1b[1mno\x1b[22m\n";
    expect(cleanKeepingColors(ours, { hasColor: true })).toBe(ours);
    expect(cleanKeepingColors(ours, { hasColor: false })).toBe(" [31m✗ [39m  [1mno [22m\n");
    expect(cleanKeepingColors("\x1b[8mhidden\x1b[2J\x1b]0;title\x07\u009b31m\u202e\x1b[31", { hasColor: true })).toBe(
      " [8mhidden [2J ]0;title 31m\ufffd [31",
    );
  });

  test("is no more obeyed out of a log's readable lines", () => {
    let written = "";
    const log = openLog({ level: "info", isTerminal: true, write: (text) => (written += text) });
    log.warn("upstream said \x1b[2J\u009b31m\u202eno", { why: "\x1b]0;x\x07", error: new Error("a\x1bb") });
    expect(written).toMatch(/warn {2}upstream said {2}\[2J 31m\ufffdno {2}why= \]0;x +\n {4}Error: a b\n/);
    expect(written.replaceAll("\n", "")).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202e]/);
  });
});
