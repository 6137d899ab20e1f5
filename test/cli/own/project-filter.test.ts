import path from "node:path";
import { expect, test } from "vitest";
import { runCli } from "../../helpers/cli.ts";
import { temporaryFolder, writeFiles } from "../../helpers/home.ts";

const command = `import { defineCommand } from "meanwhile";
export default defineCommand({ summary: "Say hello", run: () => ({ hello: true }) });
`;

/** A home with a task of each of two projects, `mail` and one without a name; the terminal is in the second. */
async function openTwoProjects() {
  const root = temporaryFolder();
  const home = temporaryFolder();
  const [cwd, mail] = [path.join(root, "own"), path.join(root, "mail")];
  writeFiles(cwd, { "commands/say/hello.ts": command });
  writeFiles(mail, {
    "commands/say/hello.ts": command,
    "meanwhile.config.json": '{ "project": "mail" }',
  });
  const env = { MEANWHILE_HOME: home };
  const idIn = async (folder: string) => {
    const { stdout } = await runCli(["say", "hello", "--detach", "--quiet"], { cwd: folder, env });
    await runCli(["tasks", "result", stdout.trim(), "--wait"], { cwd: folder, env });
    return stdout.trim();
  };
  const ids = { own: await idIn(cwd), mail: await idIn(mail) };
  return { ids, mail, list: (...words: string[]) => runCli(["tasks", "list", ...words], { cwd, env }) };
}

test("`tasks list --project` takes a folder as well as a name", async () => {
  const { ids, mail, list } = await openTwoProjects();
  for (const text of ["mail", "../mail", mail]) {
    const { stdout, stderr } = await list("--project", text);
    expect([stdout.includes(ids.mail), stdout.includes(ids.own), stderr], text).toEqual([true, false, ""]);
  }
  for (const text of [".", "../own"]) {
    const { stdout } = await list("--project", text);
    expect([stdout.includes(ids.mail), stdout.includes(ids.own)], text).toEqual([false, true]);
  }
});

test("`tasks list --project` names the projects there are where no task is of that one", async () => {
  const { list } = await openTwoProjects();
  const { stdout, stderr } = await list("--project", "nope");
  expect(stdout).toBe("No tasks.\n");
  expect(stderr).toMatch(
    /^! --project: no task of this home is of the project nope\. The newest tasks are of mail, [\w-]{16}\.\n$/,
  );
  expect((await list("--project", "mail", "--status", "failed")).stderr).toBe("");
});

test("`tasks list --project` with a path that is no folder is refused", async () => {
  const { list } = await openTwoProjects();
  expect(await list("--project", "./nope")).toMatchObject({
    code: 2,
    stdout: "",
    stderr: "✗ --project: there is no folder ./nope; give a project's folder, or its name as `tasks show` prints it.\n",
  });
});
