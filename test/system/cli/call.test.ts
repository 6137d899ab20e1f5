import { existsSync, writeFileSync } from "node:fs";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { quoteWord } from "../../../src/cli/remote/server-target.ts";
import { runCli } from "../../helpers/cli.ts";
import { killDaemons } from "../../helpers/daemon.ts";
import { temporaryFolder, writeFiles } from "../../helpers/home.ts";
import { executable, runProcess } from "../../helpers/meanwhile.ts";

/** `meanwhile call` with servers that it starts. */

const commands = path.resolve(import.meta.dirname, "../../fixtures/deferral/commands");
const ownServer = [process.execPath, executable, "--no-bundled", "--commands", commands, "serve", "--in-process"];
const everything = [
  process.execPath,
  path.resolve(import.meta.dirname, "../../../node_modules/@modelcontextprotocol/server-everything/dist/index.js"),
];

test("a server given by its command line, in one word or behind --, is started for the call", async () => {
  expect(await runProcess(["call", ownServer.map(quoteWord).join(" "), "work_quick", "text=--x"])).toMatchObject({
    code: 0,
    stdout: "text: --x\nnumber: 1\n",
  });
  expect(await runCli(["call", "get-sum", "a=2", "b=3", "--", ...everything])).toMatchObject({
    code: 0,
    stdout: "The sum of 2 and 3 is 5.\n",
  });
});

test("--detach with a server that is started for the call warns that the task may end with it", async () => {
  const file = path.join(temporaryFolder(), "trace");
  const detached = await runCli(["call", "work_long", `file=${file}`, "--detach", "--", ...ownServer]);
  expect(detached).toMatchObject({ code: 0, stdout: expect.stringMatching(/^[0-9a-f-]{36}\n$/) });
  expect(detached.stderr).toMatch(
    /^! The server is started for this call only, and a task may end with it; a URL or a socket outlives us\.\n✓ Runs on/,
  );
});

test("a task of this project's own server outlives the call", async () => {
  const cwd = writeFiles(temporaryFolder(), {
    "meanwhile.config.json": JSON.stringify({ bundled: false, commands: [commands] }),
  });
  const env = { MEANWHILE_HOME: temporaryFolder() };
  onTestFinished(() => killDaemons(env.MEANWHILE_HOME));
  const file = path.join(cwd, "trace");
  const { code, stdout, stderr } = await runProcess(["call", ".", "work_long", `file=${file}`, "--detach"], {
    cwd,
    env,
  });
  expect({ code, id: stdout.trim() }).toEqual({ code: 0, id: expect.stringMatching(/^[0-9a-f-]{36}$/) });
  expect(stderr).toBe(`✓ Runs on without you: meanwhile tasks result ${stdout.trim()} --wait --target .\n`);
  writeFileSync(`${file}.go`, "");
  expect(await runProcess(["tasks", "result", stdout.trim(), "--wait", "--target", "."], { cwd, env })).toMatchObject({
    code: 0,
    stdout: `passed: ${file}\n`,
    stderr: "",
  });
  expect(existsSync(file)).toBe(true);
});

test("a program that does not exist: one sentence, exit 1", async () => {
  expect(await runCli(["call", "there-is-no-such-program", "x"])).toMatchObject({
    code: 1,
    stdout: "",
    stderr: expect.stringMatching(/^✗ The server there-is-no-such-program cannot be started[^\n]*\n$/),
  });
});
