import { chmodSync, chownSync, existsSync, globSync, mkdirSync } from "node:fs";
import path from "node:path";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { runCli } from "../helpers/cli.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";

/** Commands that another user of the machine has put into a folder that everybody may write. */

const stranger = 65_534;
const user = 1001;
const isRoot = process.getuid?.() === 0;

interface Shared {
  readonly commands: string;
  /** Runs the CLI in the folder, as this user and with a home of their own. */
  run(uid: number, ...words: string[]): ReturnType<typeof runCli>;
  hasRun(): boolean;
}

/** Commands in a folder like /tmp; each leaves a marker when it is loaded. */
function plant(owner: number): Shared {
  const folder = temporaryFolder();
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
  const getuid = vi.spyOn(process as { getuid: () => number }, "getuid");
  onTestFinished(() => void getuid.mockRestore());
  return {
    commands: path.join(cwd, "commands"),
    async run(uid, ...words) {
      const home = path.join(folder, `home-${uid}`);
      mkdirSync(home, { recursive: true, mode: 0o700 });
      chownSync(home, uid, uid);
      getuid.mockReturnValue(uid);
      return await runCli(words, { cwd, env: { HOME: home, MEANWHILE_HOME: path.join(home, "own") } });
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

describe.runIf(isRoot)("commands that another user has put into a folder that everybody may write", () => {
  test("are not run by any command line, as a user or as root; the error names their owner", async () => {
    const { run, hasRun, commands } = plant(stranger);
    for (const words of typed) {
      const { code, stderr } = await run(user, ...words);
      expect([code, stderr], words.join(" ")).toEqual([
        70,
        expect.stringContaining(`${commands} belongs to another user (uid ${stranger}, you are ${user}), and`),
      ]);
    }
    expect(await run(0, "hack", "run")).toMatchObject({
      code: 70,
      stderr: expect.stringMatching(/you are 0\) below .*, where anybody may write/),
    });
    expect(await run(user, "_complete", "--shell", "zsh", "--", "ha")).toMatchObject({
      code: 0,
      stdout: expect.not.stringContaining("hack"),
    });
    expect(hasRun()).toBe(false);
  });

  test("are run when they are the user's own, until one part belongs to another user or may be written by anybody", async () => {
    const { run, hasRun, commands } = plant(user);
    for (const part of ["", "hack", "hack/run.mjs", "hack/_helper.mjs"]) {
      const file = path.join(commands, part);
      chownSync(file, stranger, stranger);
      expect(await run(user, "hack", "run"), part).toMatchObject({
        code: 70,
        stderr: expect.stringContaining(`${file} belongs to another user`),
      });
      chownSync(file, user, user);
    }
    chmodSync(path.join(commands, "hack"), 0o1777);
    expect(await run(user, "hack", "run")).toMatchObject({
      code: 70,
      stderr: expect.stringContaining("may be written by anybody (mode 1777)"),
    });
    chmodSync(path.join(commands, "hack"), 0o755);
    expect(hasRun()).toBe(false);
    await run(user, "hack", "run");
    expect(hasRun()).toBe(true);
  });
});
