import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { readRecord, readRecords, removeRecord, writeRecord } from "../../src/daemon/record.ts";
import { homeAt } from "../../src/paths.ts";
import { temporaryFolder } from "../helpers/home.ts";

test("a record that is absent, cut off or of another kind names nobody", () => {
  const home = homeAt({ MEANWHILE_HOME: temporaryFolder() });
  expect(readRecords(home).size).toBe(0);
  mkdirSync(home.runFolder);
  writeRecord(home, "a", { pid: 1, socket: "/s" });
  for (const [name, text] of [
    ["b.json", '{"pid":1,"so'],
    ["c.json", "null"],
    ["d.json", "7"],
    ["e.json", '{"pid":1}'],
    ["f.lock", ""],
  ] as const) {
    writeFileSync(path.join(home.runFolder, name), text);
  }
  expect([...readRecords(home)]).toEqual([["a", { pid: 1, socket: "/s" }]]);
  for (const name of ["b", "c", "d", "e", "z"]) expect(readRecord(home, name), name).toBeUndefined();
  removeRecord(home, "a", 2);
  expect(readRecords(home).size).toBe(1);
  removeRecord(home, "a", 1);
  expect(readRecords(home).size).toBe(0);
});
