import { describe, expect, test } from "vitest";
import { clean, StageView } from "../../src/cli/terminal.ts";
import type { ProgressUpdate } from "../../src/task/progress.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { openTerminalHere } from "../helpers/terminal.ts";

function open(isLive: boolean, columns = 80) {
  const clock = new FakeClock();
  const { terminal, said } = openTerminalHere({ isLive, columns });
  return {
    clock,
    view: (estimateSeconds?: number) => new StageView(terminal, { clock, estimateSeconds }),
    said,
  };
}

const at = (percentage: number, message: string): ProgressUpdate => ({
  value: percentage,
  total: 100,
  percentage,
  message,
  context: undefined,
});

describe("on a terminal", () => {
  test("a bar with percentage, message and the time left, taken away at the end", () => {
    const { clock, view, said } = open(true);
    const stages = view();
    stages.announce("Building Q3");
    clock.advance(10_000);
    stages.progress(at(25, "Page 3 of 12"));
    clock.advance(100);
    const lastFrame = said().split("\r\x1b[2K").at(-1);
    expect(lastFrame).toMatch(/^. ━{6}─{18}\s+25% {2}Page 3 of 12 {2}about 31 s left$/);
    stages.end();
    expect(said().startsWith("› Building Q3\n")).toBe(true);
    expect(said().endsWith("\r\x1b[2K")).toBe(true);
    expect(clock.pendingTimers).toBe(0);
  });

  test("a command that reports nothing still shows that it lives, with the estimate", () => {
    const { clock, view, said } = open(true);
    view(45);
    clock.advance(3_000);
    expect(said().split("\r\x1b[2K").at(-1)).toMatch(/^. about 42 s left$/);
  });

  test("never wraps: a long message is cut to the terminal's width", () => {
    const { clock, view, said } = open(true, 40);
    view().progress(at(50, "x".repeat(200)));
    clock.advance(100);
    expect(said().split("\r\x1b[2K").at(-1)?.length).toBeLessThanOrEqual(39);
  });
});

describe("in a pipe", () => {
  test("plain lines, at most one a second, the last one always", () => {
    const { clock, view, said } = open(false);
    const stages = view();
    for (let percentage = 1; percentage <= 100; percentage++) {
      stages.progress(at(percentage, `Page ${percentage}`));
      clock.advance(25);
    }
    stages.end();
    const lines = said().trimEnd().split("\n");
    expect(lines).toHaveLength(4);
    expect(lines.at(-1)).toBe("100%  Page 100");
    expect(said()).not.toContain("\x1b");
  });
});

test("what a command says cannot move the cursor or paint the screen", () => {
  expect(clean("a\x1b[31mred\r\nb\u009b2Jc")).toBe("a [31mred b 2Jc");
});
