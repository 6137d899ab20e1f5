import { spawn, spawnSync } from "node:child_process";
import { chmodSync, chownSync, globSync, lstatSync, mkdirSync, utimesSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { listedVerbs, type VerbName } from "../../src/cli/verb-list.ts";
import { shareAmongTests, temporaryFolder, writeFiles } from "../helpers/home.ts";
import { executable } from "../helpers/meanwhile.ts";

/** Another user of the machine, who has prepared a home in the hope that somebody uses it. */
const nobody = 65_534;
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
  diagnose: ["diagnose", "."],
  compare: ["compare", "a.json", "b.json"],
  setup: ["setup", "cursor"],
  daemon: ["daemon", "status"],
  upstreams: ["upstreams"],
  store: ["store", "check"],
  token: ["token"],
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

interface Planted {
  readonly folder: string;
  readonly home: string;
  readonly marker: string;
}

/** A home whose config names a folder of commands that leave a marker when they are loaded. */
function plant(owner: number, mode: number): Planted {
  const folder = temporaryFolder();
  chmodSync(folder, 0o755);
  const home = path.join(folder, "home");
  const marker = path.join(folder, "marker");
  writeFiles(folder, {
    "evil/hack/run.ts": `import { writeFileSync } from "node:fs"; writeFileSync(${JSON.stringify(marker)}, "");`,
  });
  writeFiles(home, {
    "config.json": JSON.stringify({ commands: [path.join(folder, "evil")] }),
    token: `${"t".repeat(64)}\n`,
    "run/x.json": JSON.stringify({ pid: 1, socket: path.join(home, "run/x.sock") }),
    "cache/code/planted": "",
    "tasks.db": "",
  });
  for (const name of [".", ...globSync("**/*", { cwd: home })]) {
    const file = path.join(home, name);
    chmodSync(file, name === "." ? mode : lstatSync(file).isDirectory() ? 0o755 : 0o644);
    // A read would bring the time of the last one up to date.
    utimesSync(file, 1, 2);
    chownSync(file, owner, owner);
  }
  return { folder, home, marker };
}

/** Everything that a look from outside can tell. */
function stateOf({ home, marker }: Planted): string {
  const facts = [".", ...globSync("**/*", { cwd: home }).toSorted()].map((name) => {
    const { atimeMs, mtimeMs, uid, size, mode } = lstatSync(path.join(home, name));
    const isFolder = lstatSync(path.join(home, name)).isDirectory();
    return [name, isFolder ? "" : atimeMs, mtimeMs, uid, size, mode].join(" ");
  });
  return [...facts, `marker: ${lstatSync(marker, { throwIfNoEntry: false }) !== undefined}`].join("\n");
}

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

test("every verb has its row", () => {
  expect(listedVerbs.map(({ name }) => name).toSorted()).toEqual(Object.keys(typed).toSorted());
});

describe.runIf(isRoot)("a home of another user", () => {
  const planted = shareAmongTests(() => plant(nobody, 0o755));

  test.each([...Object.entries(typed), ...Object.entries(others)])(
    "%s: one sentence, and nothing in it is read or written",
    async (_, words) => {
      const home = await planted();
      const before = stateOf(home);
      const { code, stdout, stderr } = await run(words, home, 0);
      expect({ code, stdout, stderr }).toEqual({
        code: 70,
        stdout: "",
        stderr: `✗ ${home.home} belongs to another user (uid ${nobody}, you are 0), so nothing in it was read; set MEANWHILE_HOME to a folder of your own.\n`,
      });
      expect(stateOf(home)).toBe(before);
    },
  );

  // Whoever runs the tests may keep this folder to themselves.
  const canStart =
    isRoot &&
    spawnSync(process.execPath, ["-e", "0"], { uid: nobody, gid: nobody, cwd: path.dirname(executable) }).status === 0;
  test.runIf(canStart).each([0o777, 0o755])("root's home of mode %o is refused to anybody else", async (mode) => {
    const home = plant(0, mode);
    const before = stateOf(home);
    for (const words of [
      ["serve"],
      ["tools"],
      ["hack", "run"],
      ["_complete", "--shell", "bash", "--", " ", "meanwhile ha"],
    ]) {
      const { code, stdout, stderr } = await run(words, home, nobody);
      expect({ code, stdout, stderr }).toEqual({
        code: 70,
        stdout: "",
        stderr: expect.stringMatching(
          /^✗ \S+\/home belongs to another user \(uid 0, you are 65534\), so nothing in it was read; [^\n]+\n$/,
        ),
      });
    }
    expect(stateOf(home)).toBe(before);
  });

  test.runIf(canStart)("a project's config of another user is not run", async () => {
    const { folder, marker } = plant(nobody, 0o700);
    const project = path.join(folder, "theirs");
    writeFiles(project, {
      "meanwhile.config.mjs": `import { writeFileSync } from "node:fs"; writeFileSync(${JSON.stringify(marker)}, ""); export default {};`,
    });
    chmodSync(folder, 0o777);
    const config = path.join(project, "meanwhile.config.mjs");
    chownSync(config, 1, 1);
    const env = { PATH: process.env.PATH ?? "", HOME: folder, MEANWHILE_HOME: path.join(folder, "own") };
    for (const words of [["tools"], ["serve"]]) {
      const { status, stderr } = spawnSync(process.execPath, [executable, ...words], {
        cwd: project,
        env,
        uid: nobody,
        gid: nobody,
        encoding: "utf8",
        input: "",
      });
      expect({ status, stderr }).toEqual({
        status: 70,
        stderr: expect.stringMatching(
          /^✗ \S+meanwhile\.config\.mjs belongs to another user \(uid 1, you are 65534\), and would be run as you; [^\n]+\n$/,
        ),
      });
    }
    expect(lstatSync(marker, { throwIfNoEntry: false })).toBeUndefined();
  });
});

describe("a home that others may write", () => {
  test.each([["serve"], ["tools"], ["--version"]])(
    "is refused to %s, with the cure, and its compiled code is not used",
    async (...words) => {
      const home = plant(process.getuid?.() ?? 0, 0o777);
      const before = stateOf(home);
      const { code, stderr } = await run(words, home, process.getuid?.() ?? 0);
      expect({ code, stderr }).toEqual({
        code: 70,
        stderr: `✗ ${home.home} may be written by others (mode 0777), so nothing in it was read; if what is there is yours, chmod go-w ${home.home}, or set MEANWHILE_HOME to a folder of your own.\n`,
      });
      expect(stateOf(home)).toBe(before);
    },
  );
});
