import { existsSync } from "node:fs";
import path from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { leaseThread } from "../../src/store/sqlite/lease-keeper.ts";
import { findOwnFile, requireOwn } from "../../src/system/own-module.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";

/** A program that Node was started with, and the packages beside it. */
function startedFrom(files: Readonly<Record<string, string>>): void {
  const folder = writeFiles(temporaryFolder(), files);
  const [node = "", started = ""] = process.argv;
  process.argv[1] = path.join(folder, "app.mjs");
  onTestFinished(() => void process.argv.splice(0, 2, node, started));
}

test("requires a package beside the file that Node was started with, and none of the working folder", () => {
  const files = { "node_modules/only-here/index.js": "module.exports = 7;" };
  startedFrom(files);
  expect(requireOwn("only-here")).toBe(7);
  startedFrom({});
  const cwd = vi.spyOn(process, "cwd").mockReturnValue(writeFiles(temporaryFolder(), files));
  onTestFinished(() => void cwd.mockRestore());
  expect(() => requireOwn("only-here")).toThrow(expect.objectContaining({ code: "MODULE_NOT_FOUND" }));
  process.argv[1] = "relative.mjs";
  expect(() => requireOwn("only-here")).toThrow(expect.objectContaining({ code: "MODULE_NOT_FOUND" }));
});

test("an error in a package is passed on", () => {
  startedFrom({ "node_modules/broken-here/index.js": "throw new Error('It broke.');" });
  expect(() => requireOwn("broken-here")).toThrow("It broke.");
});

test("finds the source of a file where the sources run", () => {
  const file = findOwnFile(leaseThread);
  expect(file !== undefined && existsSync(file)).toBe(true);
});
