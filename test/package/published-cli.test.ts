import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { temporaryFolder } from "../helpers/home.ts";

const root = path.resolve(import.meta.dirname, "../..");
const example = path.join(root, "examples/published-cli");

/**
 * The example as npm would install it: packed by npm, and Meanwhile beside it with what it publishes and depends on.
 * test/long/tarball.test.ts has npm install both.
 */
function install(): string {
  const folder = temporaryFolder();
  const modules = path.join(folder, "node_modules");
  const { files, dependencies } = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8")) as {
    files: string[];
    dependencies: Record<string, string>;
  };
  for (const name of ["package.json", ...files])
    cpSync(path.join(root, name), path.join(modules, "meanwhile", name), { recursive: true });
  for (const name of Object.keys(dependencies)) {
    mkdirSync(path.dirname(path.join(modules, name)), { recursive: true });
    symlinkSync(path.join(root, "node_modules", name), path.join(modules, name));
  }
  const words = ["pack", "--silent", "--pack-destination", folder];
  const tarball = execFileSync("npm", words, { cwd: example, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  const own = path.join(modules, "acme-reports");
  mkdirSync(own);
  execFileSync("tar", ["-xzf", path.join(folder, tarball.trim()), "-C", own, "--strip-components=1"]);
  mkdirSync(path.join(modules, ".bin"));
  symlinkSync("../acme-reports/bin/acme.js", path.join(modules, ".bin/acme"));
  return folder;
}

test("a program of one's own is run, completed, set up and served under its own name, as it is published", () => {
  const folder = install();
  expect(existsSync(path.join(folder, "node_modules/acme-reports/check.mjs"))).toBe(false);
  const words = [path.join(example, "check.mjs"), folder];
  const { status, stdout, stderr } = spawnSync(process.execPath, words, { encoding: "utf8" });
  expect({ status, stdout, stderr }).toEqual({
    status: 0,
    stdout: "acme: installed, run, completed, set up and served under its own name\n",
    stderr: "",
  });
});
