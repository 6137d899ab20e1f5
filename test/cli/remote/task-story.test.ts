import { createColors } from "picocolors";
import { describe, expect, test } from "vitest";
import { TaskStory } from "../../../src/cli/remote/task-story.ts";
import type { TaskState } from "../../../src/client/client.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";

function open() {
  const lines: string[] = [];
  const clock = new FakeClock();
  const story = new TaskStory({ say: (line) => lines.push(line), colors: createColors(false), clock });
  return { clock, lines, story };
}

const taskId = "550e8400-e29b-41d4-a716-446655440000";
const state = (status: TaskState["status"], statusMessage?: string, more: Partial<TaskState> = {}): TaskState => ({
  taskId,
  status,
  ...(statusMessage !== undefined && { statusMessage }),
  ...more,
});

describe("the story of a task", () => {
  test("from what was asked for to the retrieval of its result", () => {
    const { clock, lines, story } = open();
    story.begin({ endpoint: "https://your-mcp-server.com/mcp", ttlMs: 300_000, pollIntervalMs: 2_500 });
    story.task(state("working", undefined, { ttlMs: 300_000, pollIntervalMs: 5_000 }));
    for (const [ms, message] of [
      [12_500, "Running security suite"],
      [5_000, "Running security suite"],
      [10_800, "Running performance suite"],
    ] as const) {
      clock.advance(ms);
      story.poll();
      story.task(state("working", message));
    }
    clock.advance(16_800);
    story.poll();
    story.task(state("completed"));
    story.finish();
    expect(lines).toEqual([
      "› Asking for a task",
      "  Endpoint: https://your-mcp-server.com/mcp",
      "  TTL: 5 min",
      "  Poll interval: 2.5 s",
      `✓ Task created: ${taskId}`,
      "  Status: working",
      "  Server keeps the result for 5 min",
      "  Server suggests polling every 5 s",
      "› Waiting for its end",
      "  [12.5s] working - Running security suite",
      "  [28.3s] working - Running performance suite",
      "  [45.1s] completed",
      "✓ Task completed",
      "  Total time: 45.1s",
      "  Polls: 4",
      "› Retrieving the result",
    ]);
  });

  test("numbers that change behind the same words are no news", () => {
    const { clock, lines, story } = open();
    story.task(state("working", "Page 3 of 12 (25%, about 34 s left)"));
    for (const message of ["Page 3 of 12 (27%, about 33 s left)", "Page 4 of 12 (33%, about 30 s left)"]) {
      clock.advance(2_000);
      story.task(state("working", message));
    }
    expect(lines.filter((line) => line.includes("Page"))).toEqual([
      "  [0.0s] working - Page 3 of 12 (25%, about 34 s left)",
      "  [4.0s] working - Page 4 of 12 (33%, about 30 s left)",
    ]);
  });

  test("news that come fast are told once a second, the last of them always, and a new status at once", () => {
    const { clock, lines, story } = open();
    story.task(state("working"));
    for (let page = 1; page <= 25; page++) {
      story.progress(`Page ${page}`);
      clock.advance(100);
    }
    story.task(state("input_required", "Publish?"));
    clock.advance(5_000);
    story.task(state("working", "Publishing"));
    story.task(state("completed"));
    story.progress("too late");
    clock.advance(5_000);
    expect(lines.filter((line) => line.startsWith("  ["))).toEqual([
      "  [0.0s] working - Page 1",
      "  [1.0s] working - Page 10",
      "  [2.0s] working - Page 20",
      "  [2.5s] input_required - Publish?",
      "  [7.5s] working - Publishing",
      "  [7.5s] completed",
    ]);
    expect(clock.pendingTimers).toBe(0);
  });

  test("a task that fails or is cancelled is told so, once", () => {
    const failed = open();
    failed.story.task(state("working", undefined, { ttlMs: null }));
    failed.story.task(state("failed", "No disk"));
    failed.story.task(state("failed", "No disk"));
    failed.story.finish();
    expect(failed.lines.slice(2)).toEqual([
      "  Server keeps the result for ever",
      "› Waiting for its end",
      "  [0.0s] failed - No disk",
      "✗ Task failed",
      "  Total time: 0.0s",
      "  Polls: 0, the server told by itself",
      "› Retrieving the result",
    ]);
    const cancelled = open();
    cancelled.story.task(state("cancelled"));
    expect(cancelled.lines.at(-1)).toBe("  Polls: 0, the server told by itself");
  });

  test("an answer without a task, and an end that no state told of", () => {
    const { lines, story, clock } = open();
    story.begin({ endpoint: ".", ttlMs: undefined, pollIntervalMs: undefined });
    clock.advance(300);
    story.finish();
    expect(lines.slice(2)).toEqual([
      "  TTL: as the server has it",
      "  Poll interval: as the server has it",
      "! The server answered without making a task of it",
      "  Total time: 0.3s",
    ]);
    const silent = open();
    silent.story.task(state("working"));
    silent.story.finish();
    expect(silent.lines).toContain("✓ Task completed");
  });

  test("what a server says cannot move the cursor", () => {
    const { lines, story } = open();
    story.begin({ endpoint: "a\x1b[2J", ttlMs: undefined, pollIntervalMs: undefined });
    story.task({ taskId: "id\r\n\x1b[31m", status: "working", statusMessage: "\x1b]0;title\x07" });
    expect(lines.join("")).not.toMatch(/[\u0000-\u001f]/);
  });
});
