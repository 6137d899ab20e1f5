import { spawnSync } from "node:child_process";
import { chmodSync, chownSync, existsSync, globSync, mkdirSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";
import { executable } from "../helpers/meanwhile.ts";

/**
 * Another user of the machine, who has put commands into a folder that all may write, in the hope that somebody types a
 * command there.
 */
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

const typed = [
  ["transform", "some.pdf"],
  ["hack", "run"],
  ["tools"],
  ["serve", "--in-process"],
  ["--help"],
  ["config", "path"],
];

describe.runIf(isRoot)("commands that another user has put into a folder that all may write", () => {
  test("are not run by whatever is typed there, as a user or as root; the sentence says whose they are", () => {
    const { run, hasRun, commands } = plant(stranger);
    for (const words of typed) {
      const { code, stderr } = run(user, ...words);
      expect([code, stderr], words.join(" ")).toEqual([
        70,
        expect.stringContaining(`${commands} belongs to another user (uid ${stranger}, you are ${user}), and`),
      ]);
    }
    expect(run(0, "hack", "run")).toMatchObject({
      code: 70,
      stderr: expect.stringMatching(/you are 0\) below .*, where anybody may write/),
    });
    expect(run(user, "_complete", "--shell", "zsh", "--", "ha")).toMatchObject({
      code: 0,
      stdout: expect.not.stringContaining("hack"),
    });
    expect(run(user, "call", ".", "hack_run")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("belongs to another user"),
    });
    expect(run(user, "serve").stderr).toContain("belongs to another user");
    expect(hasRun()).toBe(false);
  });

  test("are run when they are the user's own, until one part is another's, or may be written by anybody", () => {
    const { run, hasRun, commands } = plant(user);
    for (const part of ["", "hack", "hack/run.mjs", "hack/_helper.mjs"]) {
      const file = path.join(commands, part);
      chownSync(file, stranger, stranger);
      expect(run(user, "hack", "run"), part).toMatchObject({
        code: 70,
        stderr: expect.stringContaining(`${file} belongs to another user`),
      });
      chownSync(file, user, user);
    }
    chmodSync(path.join(commands, "hack"), 0o1777);
    expect(run(user, "hack", "run")).toMatchObject({
      code: 70,
      stderr: expect.stringContaining("may be written by anybody (mode 1777)"),
    });
    chmodSync(path.join(commands, "hack"), 0o755);
    expect(hasRun()).toBe(false);
    run(user, "hack", "run");
    expect(hasRun()).toBe(true);
  });

  test("that cannot be read are named in one sentence by whatever looks for commands", () => {
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
