import { describe, expect, test } from "vitest";
import type { Progress } from "../../../src/client/client.ts";
import {
  fromHandle,
  fromNotification,
  fromStatusMessage,
  ProgressFilter,
} from "../../../src/client/follow/reported-progress.ts";

describe("a status message is read for what it says about progress", () => {
  test.each([
    ["Page 3 of 12 (25%, about 34 s left)", { done: 25, total: 100, message: "Page 3 of 12", etaMs: 34_000 }],
    ["Page 3 of 12 (25%, about 2 min 5 s left)", { done: 25, total: 100, message: "Page 3 of 12", etaMs: 125_000 }],
    ["Page 3 of 12 (25%, about 1 h 3 min left)", { done: 25, total: 100, message: "Page 3 of 12", etaMs: 3_780_000 }],
    ["At 1 (10%)", { done: 10, total: 100, message: "At 1" }],
    ["40%", { done: 40, total: 100 }],
    ["Uploading: 12.5 %", { done: 12.5, total: 100, message: "Uploading:" }],
    ["100%, about 0 ms left", { done: 100, total: 100, etaMs: 0 }],
  ])("%s", (text, expected) => {
    expect(fromStatusMessage(text)).toEqual(expected);
  });

  test.each([[""], ["Running"], ["120%"], ["grew by 1000%"], ["50% of the disk is full; deleting"], [undefined]])(
    "there is none in %j",
    (text) => {
      expect(fromStatusMessage(text)).toBeUndefined();
    },
  );

  test("a long message made to be slow to read is read at once", () => {
    const started = performance.now();
    expect(fromStatusMessage(`${"(1%, about ".repeat(50_000)}x`)).toBeUndefined();
    expect(performance.now() - started).toBeLessThan(30_000);
  });
});

test("a notification may carry the time left, and a job's counts to one", () => {
  expect(
    fromNotification({
      progressToken: 1,
      progress: 3,
      total: 12,
      message: "m",
      _meta: { "meanwhile/progress": { etaSeconds: 4 } },
    }),
  ).toEqual({
    done: 3,
    total: 12,
    message: "m",
    etaMs: 4000,
  });
  expect(fromNotification({ progressToken: 1, progress: 0.3, job_id: "j" })).toEqual({ done: 0.3, total: 1 });
  expect(fromNotification({ progressToken: 1, progress: "3" })).toBeUndefined();
});

test("a plain handle says how far its job is", () => {
  expect(fromHandle({ progress: { percentage: 40, message: "m", seconds_left: 2 } })).toEqual({
    done: 40,
    total: 100,
    message: "m",
    etaMs: 2000,
  });
  expect(fromHandle({ progress: {} })).toBeUndefined();
});

describe("what is passed on", () => {
  const collect = () => {
    const told: Progress[] = [];
    return { told, filter: new ProgressFilter((progress) => told.push(progress)) };
  };

  test("goes forward only, and says nothing twice", () => {
    const { told, filter } = collect();
    for (const done of [1, 2, 2, 1, 3]) filter.tell("notification", { done });
    expect(told.map(({ done }) => done)).toEqual([1, 2, 3]);
  });

  test("comes from one source: once there are notifications, status messages are no longer counted", () => {
    const { told, filter } = collect();
    filter.tell("status", { done: 10, total: 100 });
    filter.tell("notification", { done: 2, total: 12 });
    filter.tell("status", { done: 50, total: 100 });
    expect(told).toEqual([
      { done: 10, total: 100 },
      { done: 2, total: 12 },
    ]);
  });
});
