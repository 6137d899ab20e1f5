import { expect, test } from "vitest";
import { findStatedDuration } from "../../../src/diagnose/asking/stated-duration.ts";

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
  ["It takes an hour.", 3600],
  ["Renders the video. This takes a minute or two.", 60],
  ["Indexing a repository takes 10 minutes for a million lines.", 600],
  ["Waits up to 30 seconds for an answer.", 30],
  ["Exports all rows, taking about 5 min in total.", 300],
  ["Needs 10 minutes to finish.", 600],
  ["Each call lasts up to 2 hours.", 7200],
  ["A run takes between 5 and 15 minutes, depending on the size.", 900],
  ["Completes in about 90 seconds.", 90],
  ["Takes ten minutes and a lot of memory.", 600],
  ["Takes a few minutes.", 180],
  ["Takes a couple of minutes.", 120],
  ["Takes 3 minutes of processing time.", 180],
  ["Takes (on average) 4 minutes.", 240],
  ["It may take hours, depending on the network.", Number.POSITIVE_INFINITY],
  ["May take a long time.", Number.POSITIVE_INFINITY],
  ["Slow for large folders.", Number.POSITIVE_INFINITY],
  ["Starts a long-running crawl of the site.", Number.POSITIVE_INFINITY],
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
  "Creates a link. It lasts 1 hour.",
  "The token lasts 1 hour.",
  "Books a table; needs 24 hours notice.",
  "Needs 24 hours of data.",
  "takes an hour (0-23)",
  "Takes an hour and a city.",
  "Takes an hour, a minute and a second.",
  "Takes an hour string.",
  "Takes a second argument.",
  "Takes 30 seconds of audio.",
  "Takes a 10 minute clip.",
  "Takes hours and minutes.",
  "Takes opening hours.",
  "Takes a long text.",
  "Takes long-form text.",
  "Purges the cache. Changes take up to 5 minutes to appear.",
  "Finds queries that take more than 5 seconds.",
  "Lists requests taking 10 seconds or more.",
  "Fails if it takes longer than 30 seconds.",
  "Starts a timer that runs for 10 minutes.",
  "Plans a trip; the flight takes 2 hours.",
  "Cancels a long-running operation.",
  "Returns the status of a long-running task.",
  "Says whether the disk is slow.",
  "Runs every 5 minutes.",
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
