import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, test } from "vitest";
import { openSqliteStore } from "../../src/store/sqlite/sqlite-store.ts";
import { exerciseStore } from "../../src/testing/store-suite.ts";

let folder = "";
let count = 0;

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "meanwhile-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

exerciseStore(test, ({ clock, place = `own-${++count}` }) => openSqliteStore(path.join(folder, `${place}.db`), clock));
