import { expect, test } from "vitest";
import { findStatedDuration } from "../../../src/diagnose/asking/likely-slow.ts";

const stated = (description: string, name = "build_report", taskSupport?: string) =>
  findStatedDuration({ name, description, taskSupport })?.seconds;

test.each([
  ["takes ten minutes and reports nothing", 600],
  ["Builds a report. This may take up to 90 seconds.", 90],
  ["Builds a report. It takes 5 to 10 minutes, so be patient.", 600],
  ["Usually takes 45s.", 45],
  ["Runs for several hours.", 3 * 3600],
  ["Sleeps for 2h.", 7200],
  ["Demonstrates a long running operation.", Number.POSITIVE_INFINITY],
  ["A long-running, time-consuming job", Number.POSITIVE_INFINITY],
  ["This tool is slow.", Number.POSITIVE_INFINITY],
  ["It can take a while.", Number.POSITIVE_INFINITY],
  ["Takes very long for large files", Number.POSITIVE_INFINITY],
])("«%s» states %s seconds", (description, seconds) => {
  expect(stated(description)).toBe(seconds);
});

test.each([
  "Builds a report.",
  "Finds slow queries in the log.",
  "Lists running tasks that were started 5 minutes ago.",
  "Returns the minutes of a meeting.",
  "Says how long a task has run.",
  "It does not take long.",
  "Returns at once and never takes ten minutes.",
  "Needs an API token that is valid for 2 hours.",
  "Takes arguments and a session.",
])("«%s» states nothing", (description) => {
  expect(stated(description)).toBeUndefined();
});

test("a name or a task support states it too", () => {
  for (const name of ["slow_report", "slowReport", "trigger-long-running-operation", "read_slowly"])
    expect(stated("Builds.", name), name).toBe(Number.POSITIVE_INFINITY);
  expect(stated("Builds.", "get_slow_queries")).toBeUndefined();
  for (const support of ["optional", "required"])
    expect(stated("Builds.", "x", support)).toBe(Number.POSITIVE_INFINITY);
  expect(stated("Builds.", "x", "forbidden")).toBeUndefined();
});
