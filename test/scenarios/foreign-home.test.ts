import { chmodSync, chownSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { listedVerbs, type VerbName } from "../../src/cli/verb-list.ts";
import { runCli } from "../helpers/cli.ts";
import { shareAmongTests, writeFiles } from "../helpers/home.ts";
import { type Planted, plant, stateOf } from "../helpers/planted-home.ts";

/** Another user of the machine, who has prepared a home in the hope that somebody uses it. */
const nobody = 65_534;
const own = process.getuid?.() ?? 0;
const isRoot = process.getuid?.() === 0;

/** What is typed for each verb; a verb without a row fails below. */
const typed: Record<VerbName, readonly string[]> = {
  serve: ["serve"],
  wrap: ["wrap", "--", "node", "--version"],
  worker: ["worker"],
  call: ["call", ".", "config_path"],
  tools: ["tools"],
  init: ["init"],
  new: ["new", "a/b"],
  tasks: ["tasks", "list"],
  stats: ["stats"],
  hosts: ["hosts"],
  diagnose: ["diagnose", "."],
  compare: ["compare", "a.json", "b.json"],
  setup: ["setup", "cursor"],
  daemon: ["daemon", "status"],
  upstreams: ["upstreams"],
  store: ["store", "check"],
  token: ["token"],
  keys: ["keys", "list"],
  whoami: ["whoami", "--target", "."],
  completion: ["completion", "bash"],
};

const others: Record<string, readonly string[]> = {
  "serve over HTTP": ["serve", "--http", "--port", "0"],
  "serve in one process": ["serve", "--in-process"],
  "the daemon itself": ["_daemon"],
  "a detached worker": ["_work"],
  "what a front asks": ["_project"],
  "the Tab key": ["_complete", "--shell", "bash", "--", " ", "meanwhile ha"],
  "a command": ["config", "path"],
  "a command of the home's own folder": ["hack", "run"],
  "a mistyped word": ["confg"],
  help: ["--help"],
  "the version": ["--version"],
};

/** Runs the CLI as this user. */
async function run(words: readonly string[], { home, folder }: Planted, user: number) {
  const getuid = vi.spyOn(process as { getuid: () => number }, "getuid").mockReturnValue(user);
  onTestFinished(() => getuid.mockRestore());
  const cwd = path.join(folder, `project-${words.join("-").replaceAll(/\W+/g, "-")}-${user}`);
  mkdirSync(cwd);
  writeFileSync(path.join(cwd, "a.json"), "{}");
  const { code, stdout, stderr } = await runCli(words, { cwd, env: { HOME: folder, MEANWHILE_HOME: home } });
  return { code, stdout, stderr };
}

test("every verb has its row", () => {
  expect(
    listedVerbs()
      .map(({ name }) => name)
      .toSorted(),
  ).toEqual(Object.keys(typed).toSorted());
});

describe("a home of another user", () => {
  const planted = shareAmongTests(() => plant(own, 0o755));

  test.each([...Object.entries(typed), ...Object.entries(others)])(
    "%s: one sentence, and nothing in it is read or written",
    async (_, words) => {
      const home = await planted();
      const before = stateOf(home);
      expect(await run(words, home, nobody)).toEqual({
        code: 70,
        stdout: "",
        stderr: `✗ ${home.home} belongs to another user (uid ${own}, you are ${nobody}), so nothing in it was read; set MEANWHILE_HOME to a folder of your own.\n`,
      });
      expect(stateOf(home)).toBe(before);
    },
  );

  test.each(["serve", "tools", "--version"])("that everybody may write as well: %s", async (word) => {
    const home = plant(own, 0o777);
    const before = stateOf(home);
    expect(await run([word], home, nobody)).toEqual({
      code: 70,
      stdout: "",
      stderr: expect.stringContaining(`${home.home} belongs to another user (uid ${own}, you are ${nobody})`),
    });
    expect(stateOf(home)).toBe(before);
  });
});

test.runIf(isRoot).each([[["tools"]], [["serve", "--in-process"]]])(
  "a project's config of another user is not run: %j",
  async (words) => {
    const { folder, marker } = plant(nobody, 0o700);
    const project = path.join(folder, "theirs");
    writeFiles(project, {
      "meanwhile.config.mjs": `import { writeFileSync } from "node:fs"; writeFileSync(${JSON.stringify(marker)}, ""); export default {};`,
    });
    chmodSync(folder, 0o777);
    chownSync(path.join(project, "meanwhile.config.mjs"), 1, 1);
    const getuid = vi.spyOn(process as { getuid: () => number }, "getuid").mockReturnValue(nobody);
    onTestFinished(() => getuid.mockRestore());
    const env = { HOME: folder, MEANWHILE_HOME: path.join(folder, "own") };
    expect(await runCli(words, { cwd: project, env })).toMatchObject({
      code: 70,
      stderr: expect.stringMatching(
        /^✗ \S+meanwhile\.config\.mjs belongs to another user \(uid 1, you are 65534\), and would be run as you; [^\n]+\n$/,
      ),
    });
    expect(existsSync(marker)).toBe(false);
  },
);

test.each(["serve", "tools", "--version"])(
  "a home that others may write is refused to %s, with the cure",
  async (word) => {
    const home = plant(own, 0o777);
    const before = stateOf(home);
    expect(await run([word], home, own)).toEqual({
      code: 70,
      stdout: "",
      stderr: `✗ ${home.home} may be written by others (mode 0777), so nothing in it was read; if what is there is yours, chmod go-w ${home.home}, or set MEANWHILE_HOME to a folder of your own.\n`,
    });
    expect(stateOf(home)).toBe(before);
  },
);
