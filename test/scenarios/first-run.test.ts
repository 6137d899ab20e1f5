import { expect, test } from "vitest";
import { runCli, startCli } from "../helpers/cli.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";

/** What `npm init -y` of npm 11 and npm 10 writes, and a folder without a package.json. */
const folders = {
  "npm 11": { "package.json": '{ "name": "first", "version": "1.0.0", "main": "index.js", "type": "commonjs" }' },
  "npm 10": { "package.json": '{ "name": "first", "version": "1.0.0", "main": "index.js" }' },
  "no npm": {},
};

test.each(Object.entries(folders))(
  "a command of `meanwhile new` runs in a folder as %s leaves it",
  async (_name, files) => {
    const cwd = writeFiles(temporaryFolder(), files);
    const env = { MEANWHILE_HOME: temporaryFolder() };
    expect(await runCli(["new", "hello/world"], { cwd, env })).toMatchObject({
      code: 0,
      stdout: "commands/hello/world.ts\n",
      stderr: expect.stringContaining("hello world World\n"),
    });
    expect(await runCli(["hello", "world", "Ada", "--quiet"], { cwd, env })).toMatchObject({
      code: 0,
      stdout: "greeting: Hello, Ada!\n",
      stderr: "",
    });
    const client = await startCli(["serve", "--in-process"], { cwd, env }).client({ revision: "2025-11-25" }).begin();
    expect((await client.call("hello_world", { name: "Ada" })).structuredContent).toMatchObject({
      success: true,
      data: { greeting: "Hello, Ada!" },
    });
    await client.close();
  },
);

test("a package that is not installed: the terminal and an MCP client get one sentence with the cure", async () => {
  const cwd = writeFiles(temporaryFolder(), {
    ...folders["npm 11"],
    "commands/hello/needs.ts": 'import "@acme/none";\nexport default 1;\n',
  });
  const sentence = `Cannot find package '@acme/none' imported from ${cwd}/commands/hello/needs.ts; install it: \`npm install @acme/none\` in ${cwd}`;
  expect(await runCli(["hello", "needs"], { cwd })).toMatchObject({
    code: 1,
    stdout: "",
    stderr: `✗ hello needs could not be loaded from ${cwd}/commands/hello/needs.ts: ${sentence}\n`,
  });
  const client = await startCli(["serve", "--in-process"], { cwd }).client({ revision: "2025-11-25" }).begin();
  const answer = await client.call("hello_needs", {});
  expect(answer.isError).toBe(true);
  expect(JSON.stringify(answer.content)).toContain("install it: `npm install @acme/none`");
  await client.close();
});
