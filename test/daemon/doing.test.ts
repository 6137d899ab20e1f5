import { existsSync, mkdirSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { DoingFile, whatBlocks } from "../../src/daemon/doing.ts";
import { homeAt } from "../../src/paths.ts";
import { temporaryFolder } from "../helpers/home.ts";

const begun = Date.parse("2026-07-28T10:00:00Z");

const running = (commands: readonly string[]) => ({ commands, loading: [] });

function setUp() {
  const home = homeAt({ MEANWHILE_HOME: temporaryFolder() });
  mkdirSync(home.runFolder, { recursive: true });
  return { home, doing: new DoingFile(home, "k", 77), file: path.join(home.runFolder, "k.doing") };
}

test("a loop that has not turned for 2 s while commands run is blocked: by which, since when; a moment before that it is not", () => {
  const { home, doing } = setUp();
  doing.write(running(["shop_sync", "shop_list"]), begun);
  expect(whatBlocks(home, "k", 77, begun + 1_999)).toBeUndefined();
  expect(whatBlocks(home, "k", 77, begun + 34_000)?.text).toMatch(
    /^blocked for 34 s, since \d\d:\d\d:\d\d, while shop_sync, shop_list ran$/,
  );
  doing.write(running(["shop_sync"]), begun + 250);
  expect(whatBlocks(home, "k", 77, begun + 2_250)?.text).toMatch(
    /^blocked for 2 s, since \d\d:\d\d:\d\d, while shop_sync ran$/,
  );
  expect(whatBlocks(home, "k", 78, begun + 60_000), "another daemon's words").toBeUndefined();
  doing.close();
});

test("where nothing runs nothing is written, and a daemon that leaves takes its own words along, not those of the next", () => {
  const { home, doing, file } = setUp();
  doing.write(running([]), begun);
  expect(existsSync(file)).toBe(false);
  doing.write(running(["a"]), begun);
  doing.write(running([]), begun + 250);
  expect(whatBlocks(home, "k", 77, begun + 60_000)).toBeUndefined();
  const next = new DoingFile(home, "k", 78);
  next.write(running(["b"]), begun);
  doing.close();
  expect(whatBlocks(home, "k", 78, begun + 60_000)?.text).toContain("while b ran");
  next.close();
  expect(existsSync(file)).toBe(false);
});

test("a loop that is blocked while files are loaded names their commands", () => {
  const { home, doing } = setUp();
  doing.write({ commands: [], loading: ["shop_sync"] }, begun);
  expect(whatBlocks(home, "k", 77, begun + 12_000)?.text).toMatch(/ while the file of shop_sync was loaded$/);
  expect(whatBlocks(home, "k", 77, begun + 12_000)?.cure).toBe("a loop at the top level of a file?");
  doing.write({ commands: ["a"], loading: ["b", "c"] }, begun);
  expect(whatBlocks(home, "k", 77, begun + 12_000)?.text).toMatch(/ while a ran and the files of b, c were loaded$/);
  expect(whatBlocks(home, "k", 77, begun + 12_000)?.cure).toBe(
    'isolation: "process" prevents that; a loop at the top level of a file?',
  );
  const names = Array.from({ length: 20 }, (_, at) => `${at}`.padEnd(128, "x"));
  doing.write({ commands: names, loading: names }, begun);
  expect(whatBlocks(home, "k", 77, begun + 12_000)?.text).toContain(names[7]);
  doing.write({ commands: [], loading: [] }, begun);
  expect(whatBlocks(home, "k", 77, begun + 12_000)).toBeUndefined();
  doing.close();
});
