import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { homeAt } from "../../src/paths.ts";
import { readLauncher } from "../../src/setup/launcher/launcher-file.ts";
import { temporaryFolder } from "../helpers/home.ts";
import { copyPackage, executableIn } from "../helpers/package-copy.ts";

/** Copies of the package that start in one home, whose launcher the entries of all hosts name. */

/** Installs a copy in a folder's node_modules; returns its executable. */
function install(folder: string, version: string, manifest?: string): string {
  const package_ = path.join(folder, "node_modules", "meanwhile");
  mkdirSync(path.dirname(package_), { recursive: true });
  renameSync(copyPackage({ version }), package_);
  if (manifest !== undefined) writeFileSync(path.join(folder, "package.json"), manifest);
  return executableIn(package_);
}

function run(file: string, home: string, words: readonly string[]) {
  const env = { PATH: process.env.PATH, HOME: path.dirname(home), MEANWHILE_HOME: home };
  const { status, stdout, stderr } = spawnSync(file, words, { env, encoding: "utf8" });
  return { status, stdout, stderr };
}

test("a copy in a project's node_modules leaves the launcher to the global one, until that is gone", () => {
  const folder = temporaryFolder();
  const [home, server] = [path.join(folder, "home"), path.join(folder, "server.cjs")];
  writeFileSync(server, 'console.log("alone");');
  const global = install(path.join(folder, "prefix", "lib"), "1.0.0");
  const project = install(path.join(folder, "shop"), "9.0.0", "{}");
  const recorded = () => readLauncher(homeAt({ MEANWHILE_HOME: home }), { isWindows: false });
  const remark = "This copy is removed with its project; after npm install -g meanwhile run setup again.\n";
  expect(run(global, home, ["setup", "cursor"]).stderr).not.toContain(remark);
  expect(recorded()).toMatchObject({ version: "1.0.0", package: global });
  const { launcher } = homeAt({ MEANWHILE_HOME: home });
  const before = readFileSync(launcher, "utf8");

  expect(run(project, home, ["hosts"])).toMatchObject({ status: 0 });
  const kept = run(project, home, ["setup", "cursor"]);
  expect([kept.status, kept.stderr.includes(remark)]).toEqual([0, false]);
  expect(readFileSync(launcher, "utf8")).toBe(before);

  rmSync(global);
  run(project, home, ["hosts"]);
  expect(recorded()).toMatchObject({ version: "9.0.0", package: project });
  rmSync(path.join(folder, ".cursor"), { recursive: true });
  expect(run(project, home, ["setup", "cursor"]).stderr).toContain(remark);

  rmSync(path.join(folder, "shop"), { recursive: true });
  const alone = run(launcher, home, ["wrap", "--name", "x", "--", process.execPath, server]);
  expect(alone).toMatchObject({ status: 0, stdout: "alone\n" });
  expect(alone.stderr).toContain(`${project} is gone, so node runs without Meanwhile`);

  const newGlobal = install(path.join(folder, "prefix2", "lib"), "8.0.0");
  run(newGlobal, home, ["hosts"]);
  expect(recorded()).toMatchObject({ version: "8.0.0", package: newGlobal });
});
