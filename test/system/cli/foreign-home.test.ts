import { spawn, spawnSync } from "node:child_process";
import { chmodSync, chownSync, lstatSync, mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { writeFiles } from "../../helpers/home.ts";
import { executable } from "../../helpers/meanwhile.ts";
import { type Planted, plant, stateOf } from "../../helpers/planted-home.ts";

/** What the executable does before it loads the CLI: compiled code of the home, and the stdio proxy. */

const nobody = 65_534;
const own = process.getuid?.() ?? 0;
const isRoot = own === 0;

async function run(words: readonly string[], { home, folder }: Planted, user: number) {
  const cwd = path.join(folder, `project-${words.join("-").replaceAll(/\W+/g, "-")}-${user}`);
  mkdirSync(cwd);
  writeFileSync(path.join(cwd, "a.json"), "{}");
  const env = { PATH: process.env.PATH ?? "", HOME: folder, MEANWHILE_HOME: home };
  const child = spawn(process.execPath, [executable, ...words], {
    cwd,
    env,
    uid: user,
    gid: user,
    stdio: ["ignore", "pipe", "pipe"],
    timeout: 60_000,
  });
  let [stdout, stderr] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  const code = await new Promise((resolve) => child.on("close", (number, signal) => resolve(number ?? signal)));
  return { code, stdout, stderr };
}

describe.runIf(isRoot)("nothing in a home of another user is read or written", () => {
  test.each([["serve"], ["wrap", "--", "node", "--version"], ["tools"]])("by root: %s", async (...words) => {
    const home = plant(nobody, 0o755);
    const before = stateOf(home);
    expect(await run(words, home, own)).toEqual({
      code: 70,
      stdout: "",
      stderr: `✗ ${home.home} belongs to another user (uid ${nobody}, you are 0), so nothing in it was read; set MEANWHILE_HOME to a folder of your own.\n`,
    });
    expect(stateOf(home)).toBe(before);
  });

  // Whoever runs the tests may keep this folder to themselves.
  const canStart =
    isRoot &&
    spawnSync(process.execPath, ["-e", "0"], { uid: nobody, gid: nobody, cwd: path.dirname(executable) }).status === 0;

  test.runIf(canStart)("by another user than root, and neither is a project's config", async () => {
    const home = plant(0, 0o777);
    const before = stateOf(home);
    expect(await run(["hack", "run"], home, nobody)).toEqual({
      code: 70,
      stdout: "",
      stderr: expect.stringMatching(/^✗ \S+\/home belongs to another user \(uid 0, you are 65534\), [^\n]+\n$/),
    });
    expect(stateOf(home)).toBe(before);
    const { folder, marker } = plant(nobody, 0o700);
    const project = path.join(folder, "theirs");
    writeFiles(project, {
      "meanwhile.config.mjs": `import { writeFileSync } from "node:fs"; writeFileSync(${JSON.stringify(marker)}, ""); export default {};`,
    });
    chmodSync(folder, 0o777);
    chownSync(path.join(project, "meanwhile.config.mjs"), 1, 1);
    const served = spawnSync(process.execPath, [executable, "serve"], {
      cwd: project,
      env: { PATH: process.env.PATH ?? "", HOME: folder, MEANWHILE_HOME: path.join(folder, "own") },
      uid: nobody,
      gid: nobody,
      encoding: "utf8",
      input: "",
    });
    expect([served.status, served.stderr]).toEqual([
      70,
      expect.stringMatching(/^✗ \S+meanwhile\.config\.mjs belongs to another user \(uid 1, you are 65534\), /),
    ]);
    expect(lstatSync(marker, { throwIfNoEntry: false })).toBeUndefined();
  });
});

test.each(["serve", "--version"])("compiled code of a home that others may write is not used: %s", async (word) => {
  const home = plant(own, 0o777);
  const before = stateOf(home);
  expect(await run([word], home, own)).toMatchObject({
    code: 70,
    stderr: expect.stringContaining("may be written by others (mode 0777), so nothing in it was read"),
  });
  expect(stateOf(home)).toBe(before);
});
