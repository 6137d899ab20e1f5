import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, test } from "vitest";
import { openStore } from "../../src/store/open.ts";
import { exerciseStore } from "../../src/testing/store-suite.ts";

let folder = "";
let count = 0;

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "meanwhile-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

exerciseStore(test, ({ clock, place = `own-${++count}` }) => openStore(path.join(folder, `${place}.db`), { clock }));
