import { existsSync, mkdirSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { DoingFile, whatBlocks } from "../../src/daemon/doing.ts";
import { homeAt } from "../../src/paths.ts";
import { temporaryFolder } from "../helpers/home.ts";

const begun = Date.parse("2026-07-28T10:00:00Z");

function setUp() {
  const home = homeAt({ MEANWHILE_HOME: temporaryFolder() });
  mkdirSync(home.runFolder, { recursive: true });
  return { home, doing: new DoingFile(home, "k", 77), file: path.join(home.runFolder, "k.doing") };
}

test("a loop that has not turned for 2 s while commands run is blocked: by which, since when; a moment before that it is not", () => {
  const { home, doing } = setUp();
  doing.write(["shop_sync", "shop_list"], begun);
  expect(whatBlocks(home, "k", 77, begun + 1_999)).toBeUndefined();
  expect(whatBlocks(home, "k", 77, begun + 34_000)).toMatch(
    /^blocked for 34 s, since \d\d:\d\d:\d\d, while shop_sync, shop_list ran$/,
  );
  doing.write(["shop_sync"], begun + 250);
  expect(whatBlocks(home, "k", 77, begun + 2_250)).toMatch(
    /^blocked for 2 s, since \d\d:\d\d:\d\d, while shop_sync ran$/,
  );
  expect(whatBlocks(home, "k", 78, begun + 60_000), "another daemon's words").toBeUndefined();
  doing.close();
});

test("where nothing runs nothing is written, and a daemon that leaves takes its own words along, not those of the next", () => {
  const { home, doing, file } = setUp();
  doing.write([], begun);
  expect(existsSync(file)).toBe(false);
  doing.write(["a"], begun);
  doing.write([], begun + 250);
  expect(whatBlocks(home, "k", 77, begun + 60_000)).toBeUndefined();
  const next = new DoingFile(home, "k", 78);
  next.write(["b"], begun);
  doing.close();
  expect(whatBlocks(home, "k", 78, begun + 60_000)).toContain("while b ran");
  next.close();
  expect(existsSync(file)).toBe(false);
});
