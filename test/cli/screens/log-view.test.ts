import { createColors } from "picocolors";
import { expect, test } from "vitest";
import { LogView, readableLine } from "../../../src/cli/screens/log-view.ts";

const plain = createColors(false);
const line = (facts: object) => JSON.stringify({ level: 30, time: "2026-01-31T12:00:05.123Z", ...facts });

test("a line of the log is time, level, message and facts, and the stack of its error below", () => {
  expect(readableLine(line({ msg: "the daemon listens", pid: 7, socket: "/tmp/x.sock" }), plain)).toBe(
    "2026-01-31 12:00:05 info  the daemon listens  pid=7  socket=/tmp/x.sock",
  );
  expect(
    readableLine(line({ level: 50, msg: "it failed", error: { stack: "Error: no\n    at x.ts:1:2" } }), plain),
  ).toBe("2026-01-31 12:00:05 error it failed\n    Error: no\n        at x.ts:1:2");
  expect(readableLine(line({ level: 40, msg: "careful" }), createColors(true))).toContain(
    "\x1b[33mwarn \x1b[39m careful",
  );
});

test("what is no line of ours stays, and nothing in any line is obeyed", () => {
  for (const other of ["Segmentation fault", "[1]", "null", '{"level":30}', '{"level":99,"time":"x","msg":"y"}'])
    expect(readableLine(other, plain)).toBe(other);
  const shown = readableLine(line({ msg: "a\x1b[2Jb", "k\x07": "v\nw", error: { stack: "s\x1b[31m" } }), plain);
  expect(shown).toBe("2026-01-31 12:00:05 info  a [2Jb  k =v w\n    s [31m");
  expect(readableLine("evil \x1b]0;x\x07", plain)).not.toMatch(/[\x1b\x07]/);
});

test("lines that come in pieces are put together, and an endless one is not waited for", () => {
  const view = new LogView(plain);
  const text = line({ msg: "one" });
  expect(view.take(text.slice(0, 20))).toBe("");
  expect(view.take(`${text.slice(20)}\nlast`)).toBe("2026-01-31 12:00:05 info  one\n");
  expect(view.end()).toBe("last\n");
  expect(view.end()).toBe("");
  expect(view.take("x".repeat(1024 * 1024 + 1))).toHaveLength(1024 * 1024 + 2);
});
