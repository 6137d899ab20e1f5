import { spawnSync } from "node:child_process";
import { chmodSync, chownSync, existsSync, globSync, mkdirSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { temporaryFolder, writeFiles } from "../../helpers/home.ts";
import { executable } from "../../helpers/meanwhile.ts";

/** Other users of the machine than the one who runs the tests. */
const stranger = 65_534;
const user = 1001;
const isRoot = process.getuid?.() === 0;

interface Shared {
  readonly cwd: string;
  readonly commands: string;
  /** Runs a command line as a user who has a home of their own. */
  run(
    uid: number,
    ...words: string[]
  ): { readonly code: number | null; readonly stdout: string; readonly stderr: string };
  hasRun(): boolean;
}

/** Commands in a folder like /tmp; each leaves a marker when it is loaded. */
function plant(owner: number): Shared {
  const folder = temporaryFolder();
  chmodSync(folder, 0o755);
  const cwd = path.join(folder, "shared");
  const marks = path.join(folder, "marks");
  for (const one of [cwd, marks]) {
    mkdirSync(one);
    chmodSync(one, 0o1777);
  }
  const text = `import { writeFileSync } from "node:fs"; writeFileSync(${JSON.stringify(path.join(marks, "ran"))}, ""); export default {};`;
  writeFiles(cwd, {
    "commands/transform/index.mjs": text,
    "commands/hack/run.mjs": text,
    "commands/hack/_helper.mjs": text,
  });
  for (const name of ["", ...globSync("**/*", { cwd: path.join(cwd, "commands") })])
    chownSync(path.join(cwd, "commands", name), owner, owner);
  return {
    cwd,
    commands: path.join(cwd, "commands"),
    run(uid, ...words) {
      const home = path.join(folder, `home-${uid}`);
      mkdirSync(home, { recursive: true, mode: 0o700 });
      chownSync(home, uid, uid);
      const env = { PATH: process.env.PATH, HOME: home, MEANWHILE_HOME: path.join(home, "own") };
      const { status, stdout, stderr } = spawnSync(process.execPath, [executable, ...words], {
        cwd,
        env,
        uid,
        gid: uid,
        input: "",
        encoding: "utf8",
      });
      return { code: status, stdout, stderr };
    },
    hasRun: () => existsSync(path.join(marks, "ran")),
  };
}

describe.runIf(isRoot)("commands in a folder that everybody may write", () => {
  test("are run by no process of the CLI when they belong to another user", () => {
    const { run, hasRun, commands } = plant(stranger);
    const owner = `${commands} belongs to another user (uid ${stranger}, you are ${user}), and`;
    expect(run(user, "hack", "run")).toMatchObject({ code: 70, stderr: expect.stringContaining(owner) });
    // A stdio proxy, and one that is started for a call.
    expect(run(user, "serve").stderr).toContain(owner);
    expect(run(user, "call", ".", "hack_run")).toMatchObject({ code: 1, stderr: expect.stringContaining(owner) });
    expect(hasRun()).toBe(false);
  });

  test("that cannot be read are named in one sentence by every command line that looks for commands", () => {
    const { run, hasRun, commands } = plant(user);
    const closed = path.join(commands, "hack");
    chmodSync(closed, 0o000);
    for (const words of [["--help"], ["config", "path"], ["tools"]])
      expect(run(user, ...words)).toMatchObject({
        code: 70,
        stderr: `✗ ${closed} cannot be read (EACCES), and commands are looked for in it; chmod u+rx it, or move it elsewhere.\n`,
      });
    expect(hasRun()).toBe(false);
  });
});
