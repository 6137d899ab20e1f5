import { chmodSync, existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { pageOpener } from "../../../src/system/open-page.ts";
import { temporaryFolder, writeFiles } from "../../helpers/home.ts";

/** A folder with a program in the place of the system's, that writes down what it was started with. */
function programs() {
  const folder = temporaryFolder();
  const told = path.join(folder, "told");
  writeFiles(folder, { "xdg-open": `#!/bin/sh\nprintf '%s|' "$#" "$1" > ${told}.part && mv ${told}.part ${told}\n` });
  chmodSync(path.join(folder, "xdg-open"), 0o755);
  return { folder, told };
}

test("a page is opened by the system's own program, and no shell reads its address", async () => {
  const { folder, told } = programs();
  const open = pageOpener({ DISPLAY: ":0", PATH: `relative:${folder}` }, "linux");
  const address = new URL("https://a.example/?a=$(touch%20x)&b=`id`;c='\"");
  expect(await open?.(address)).toBe(true);
  await expect.poll(() => existsSync(told), { timeout: 50_000 }).toBe(true);
  expect(readFileSync(told, "utf8")).toBe(`1|${address.href}|`);
});

test("nothing but pages is opened", async () => {
  const { folder, told } = programs();
  const open = pageOpener({ DISPLAY: ":0", PATH: folder }, "linux");
  for (const address of ["file:///etc/passwd", "javascript:alert(1)", "mailto:a@b.example"])
    expect(await open?.(new URL(address))).toBe(false);
  expect(existsSync(told)).toBe(false);
});

test("nobody is sent to a page that they would not see", async () => {
  const { folder } = programs();
  expect(pageOpener({ PATH: folder }, "linux")).toBeUndefined();
  expect(pageOpener({ DISPLAY: ":0", PATH: "/nowhere" }, "linux")).toBeUndefined();
  for (const platform of ["darwin", "win32"] as const) {
    expect(pageOpener({}, platform)).toBeDefined();
    expect(pageOpener({ SSH_CONNECTION: "1.2.3.4 5 6.7.8.9 22" }, platform)).toBeUndefined();
  }
  const gone = pageOpener({ SystemRoot: "/nowhere" }, "win32");
  expect(await gone?.(new URL("https://a.example/"))).toBe(false);
});
