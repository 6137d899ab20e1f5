import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, onTestFinished, type TestContext, test } from "vitest";
import { homeAt } from "../../src/paths.ts";
import { programVersion } from "../../src/project/project.ts";
import { refreshLauncher, writeLauncher } from "../../src/setup/launcher/launcher-file.ts";
import { temporaryFolder } from "../helpers/home.ts";
import { executable } from "../helpers/meanwhile.ts";

/** A file system of its own, or no test. */
function mountAt(context: TestContext, folder: string, options: string): void {
  mkdirSync(folder, { recursive: true });
  const words = ["-t", "tmpfs", "-o", `mode=0700,size=1m${options}`, "tmpfs", folder];
  const { status, stderr } = spawnSync("mount", words, { encoding: "utf8" });
  if (status !== 0) context.skip(`no disk could be mounted here: ${stderr}`);
  onTestFinished(() => void execFileSync("umount", ["--lazy", folder]));
}

describe("a home on a file system of its own", () => {
  const node = { file: process.execPath, version: process.versions.node, isWindows: false };

  test("that is read-only: the launcher starts the package, and a newer version leaves it as it is", async (context) => {
    const env = { MEANWHILE_HOME: path.join(temporaryFolder(), "home") };
    const home = homeAt(env);
    mountAt(context, home.folder, "");
    writeLauncher(home, env, node);
    const older = readFileSync(home.launcher, "utf8").replace('{"version":"', '{"version":"0.0.');
    writeFileSync(home.launcher, older);
    execFileSync("mount", ["-o", "remount,ro", home.folder]);
    refreshLauncher(home, env, node);
    expect(readFileSync(home.launcher, "utf8")).toBe(older);
    const { status, stdout } = spawnSync(home.launcher, ["--version"], { encoding: "utf8" });
    expect([status, stdout]).toEqual([0, `${programVersion()}\n`]);
  });

  test("that runs no programs: setup changes nothing, and says why", (context) => {
    const env = { MEANWHILE_HOME: path.join(temporaryFolder(), "home") };
    mountAt(context, env.MEANWHILE_HOME, ",noexec");
    expect(() => writeLauncher(homeAt(env), env, node)).toThrow(
      `Nothing was changed: hosts cannot run ${env.MEANWHILE_HOME}/bin/meanwhile, because its file system is mounted with noexec; set MEANWHILE_HOME to a folder on another one.`,
    );
  });
});

test.each(["077", "177"])(
  "setup with the umask %s makes the launcher one that can be run, or says why not",
  (umask) => {
    const user = temporaryFolder();
    const env = { PATH: process.env.PATH, HOME: user, MEANWHILE_HOME: path.join(user, "home") };
    const { launcher } = homeAt(env);
    mkdirSync(path.dirname(launcher), { recursive: true, mode: 0o700 });
    writeFileSync(launcher, "");
    mkdirSync(path.join(user, ".cursor"));
    const words = [process.execPath, executable, "setup", "cursor"];
    const { status, stderr } = spawnSync("sh", ["-c", `umask ${umask}; exec "$@"`, "sh", ...words], {
      env,
      encoding: "utf8",
    });
    if (umask === "077") expect([status, statSync(launcher).mode & 0o777]).toEqual([0, 0o700]);
    else
      expect([status, stderr]).toEqual([
        1,
        `✗ Cursor: Nothing was changed: hosts cannot run ${launcher}, because it got the mode 0600 in place of 0700 from the umask or its file system; change the umask, or set MEANWHILE_HOME to a folder on another file system.\n`,
      ]);
  },
);
