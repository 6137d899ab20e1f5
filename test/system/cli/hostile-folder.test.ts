import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { killDaemons, killWorkers } from "../../helpers/daemon.ts";
import { cleanUp, temporaryFolder, writeFiles } from "../../helpers/home.ts";
import { executable, runProcess } from "../../helpers/meanwhile.ts";

/** A cloned folder with real processes in it: what Node itself reads, what a shell starts, and files that block. */

function openFolder() {
  const folder = temporaryFolder();
  const [cwd, home, marker] = ["cloned", "home", "marker"].map((name) => path.join(folder, name)) as [
    string,
    string,
    string,
  ];
  mkdirSync(path.join(cwd, "commands"), { recursive: true });
  cleanUp(() => killDaemons(home));
  cleanUp(() => killWorkers(home));
  const mark = (what: string) =>
    `import { appendFileSync } from "node:fs";\nappendFileSync(${JSON.stringify(marker)}, "${what}\\n");\n`;
  return {
    ...{ cwd, home, marker, mark },
    marks: () => (existsSync(marker) ? readFileSync(marker, "utf8").trim().split("\n") : []),
    run: (...words: string[]) => runProcess(words, { cwd, env: { MEANWHILE_HOME: home } }),
  };
}

function openHostile() {
  const folder = openFolder();
  const { cwd, mark } = folder;
  writeFiles(cwd, {
    "meanwhile.config.mjs": `${mark("config")}export default {};\n`,
    "commands/evil/run.mjs": `import { defineCommand } from "meanwhile";\nimport { z } from "zod";\n${mark("command")}export default defineCommand({ summary: "x", input: z.object({ kind: z.string() }), run: () => ({}) });\n`,
    "package.json": JSON.stringify({ type: "module", main: "./preload.js", imports: { "#x": "./preload.js" } }),
    "preload.js": mark("preload"),
    ".env": `NODE_OPTIONS=--import=${path.join(cwd, "preload.js")}\n`,
  });
  return folder;
}

test("in a cloned folder a process runs nothing of it for help, tasks, a typing mistake and Tab in a real bash", async () => {
  const { cwd, home, marks, run } = openHostile();
  for (const words of [["--help"], ["tasks", "list"], ["daemon", "status"], ["evil", "run", "--help"], ["mistyped"]])
    expect([0, 2], words.join(" ")).toContain((await run(...words)).code);
  const { stdout: script } = await run("completion", "bash");
  const bin = writeFiles(temporaryFolder(), {
    "completion.bash": script,
    meanwhile: `#!/bin/sh\nexec "${process.execPath}" "${executable}" "$@"\n`,
  });
  chmodSync(path.join(bin, "meanwhile"), 0o755);
  const call = `source "$2/completion.bash"; PATH=$2:$PATH
COMP_LINE=$1 COMP_POINT=\${#1} COMP_WORDS=($1) COMP_CWORD=$((\${#COMP_WORDS[@]} - 1))
_meanwhile; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout } = spawnSync("bash", ["--noprofile", "--norc", "-c", call, "bash", "meanwhile ev", bin], {
    cwd,
    env: { ...process.env, MEANWHILE_HOME: home, LC_ALL: "C.UTF-8" },
    encoding: "utf8",
  });
  expect(stdout).toBe("evil\n");
  expect(marks()).toEqual([]);
});

test("`call .` runs the config and the command", async () => {
  const { marks, run } = openHostile();
  expect(await run("call", ".", "evil_run", "kind=small")).toMatchObject({ code: 0 });
  expect(marks()).toEqual(expect.arrayContaining(["config", "command"]));
});

test("a config and a command file that are named pipes block nobody", async () => {
  const { cwd, run } = openFolder();
  for (const name of ["meanwhile.config.ts", "commands/pipe.ts"]) spawnSync("mkfifo", [path.join(cwd, name)]);
  for (const words of [
    ["--help"],
    ["tasks", "list"],
    ["pipe", "--help"],
    ["_complete", "--shell", "zsh", "--", "pipe", ""],
  ])
    expect(await run(...words), words.join(" ")).toMatchObject({ code: 0 });
});

test("`serve` refuses a config of code that is far too large, and says how large it is", async () => {
  const { cwd, run } = openFolder();
  rmSync(path.join(cwd, "commands"), { recursive: true });
  const file = path.join(cwd, "meanwhile.config.mjs");
  writeFileSync(file, "");
  truncateSync(file, 1.5 * 2 ** 30);
  expect(await run("serve")).toMatchObject({
    code: 70,
    stderr: `✗ ${file} has 1610612736 bytes, and a config has at most 1048576; take out what is no setting.\n`,
  });
});
