import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { type CliOptions, createCli, defineCommand, jsonSchema } from "../../src/index.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";
import { OwnProgramHere } from "../helpers/own-program-here.ts";

describe("what could not work is refused when it is made, in one sentence", () => {
  const commands = path.resolve(import.meta.dirname, "../fixtures/daemon/commands");
  const made = (options: object) => () =>
    createCli({ name: "acme", version: "1.2.0", commands, ...options } as CliOptions);

  test.each(
    [
      ["", "Acme", "1acme", "ac me", "ac_me", "acme-", "a--b", "-acme", "a".repeat(41), "ácme", "a/b", "..", 7].map(
        (name) => [name],
      ),
    ].flat(),
  )("a name like %j", (name) => {
    expect(made({ name })).toThrow(TypeError);
    expect(made({ name })).toThrow(/^createCli: name must be up to 40 lower-case letters/);
  });

  test.each(["meanwhile", "java", "ssh", "git", "node", "codex", "complete", "con", "com1"])(
    "a name that is taken: %s",
    (name) => {
      expect(made({ name })).toThrow(TypeError);
      expect(made({ name })).toThrow(`createCli: name must not be "${name}"`);
    },
  );

  test.each([
    [{ version: "" }, "version must be"],
    [{ version: 1 }, "version must be"],
    [{ version: "1 && rm" }, "version must be"],
    [{ commands: "commands" }, "commands must be a whole path or a file URL"],
    [{ commands: ["./commands"] }, "commands must be a whole path or a file URL"],
    [{ commands: new URL("https://example.org/commands/") }, "commands must be a whole path or a file URL"],
    [{ commands: [] }, "commands must be"],
    [{ commands: [{ summary: "no command" }] }, "commands must be a whole path or a file URL"],
    [{ commands: undefined }, "commands must be"],
    [{ commands: "/no/such/folder" }, "there is no folder of commands /no/such/folder"],
    [{ bundled: true }, "bundled and pack"],
  ])("%j", (options, sentence) => {
    expect(made(options)).toThrow(`createCli: ${sentence}`);
  });

  test("a setting that no config has, by the same rules", () => {
    expect(made({ toolPrefixx: "a" })).toThrow(/createCli.*toolPrefixx/s);
  });

  test("names that are right", () => {
    for (const name of ["a", "acme", "my-tool", "a1-2b", "a".repeat(40)]) expect(made({ name })).not.toThrow();
  });
});

describe("its home and settings are its own", () => {
  test("~/.acme, and nothing of MEANWHILE_… is heard", async () => {
    const acme = new OwnProgramHere();
    const elsewhere = temporaryFolder();
    const env = { ACME_HOME: "", MEANWHILE_HOME: elsewhere, MEANWHILE_LOG: "nonsense", MEANWHILE_STORE: "/no/where" };
    expect(await acme.run(["report", "build", "Q3", "--quiet"], env)).toEqual({
      code: 0,
      stdout: "built: Q3\n",
      stderr: "",
    });
    expect(await acme.run(["token"], env)).toMatchObject({ code: 0, stdout: `${tokenIn(acme.home)}\n` });
    expect(readdirSync(elsewhere)).toEqual([]);
    expect(readdirSync(acme.user)).toEqual([".acme"]);
    const wrong = await acme.run(["tools"], { ACME_LOG: "nonsense" });
    expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining("ACME_LOG must be one of") });
  });

  test("a name with hyphens has its variables with underscores", async () => {
    const tool = new OwnProgramHere({ name: "my-tool" });
    const home = path.join(tool.user, "there");
    await tool.run(["token"], { MY_TOOL_HOME: home });
    const { stdout } = await tool.run(["completion", "bash"], { MY_TOOL_HOME: home });
    expect(stdout).toMatch(/^_my_tool\(\) \{\n[\s\S]*command my-tool _complete[\s\S]*-F _my_tool my-tool\n$/m);
    expect(existsSync(path.join(home, "token"))).toBe(true);
    expect(existsSync(tool.home)).toBe(false);
  });

  test("what its user sets in its home counts, but brings no commands", async () => {
    const acme = new OwnProgramHere();
    const other = writeFiles(temporaryFolder(), { "evil/run.js": 'throw new Error("loaded");' });
    writeFiles(acme.home, { "config.json": JSON.stringify({ commands: [other], bundled: true, toolPrefix: "mine" }) });
    const { stdout, code } = await acme.run(["tools", "--json"]);
    const { tools, problems } = JSON.parse(stdout) as { tools: { name: string }[]; problems: unknown[] };
    expect({ code, tools: tools.map(({ name }) => name), problems }).toEqual({
      code: 0,
      tools: ["mine_report_build"],
      problems: [],
    });
  });

  test("what its author sets is over that, and its variables are over both", async () => {
    const wrong = { toolPrefix: "theirs", logLevel: "loud" } as unknown as Partial<CliOptions>;
    expect(() => new OwnProgramHere({ options: wrong })).toThrow(/createCli.*logLevel/s);
    const right = new OwnProgramHere({ options: { toolPrefix: "theirs", summary: "Reports of a quarter" } });
    writeFiles(right.home, { "config.json": '{ "toolPrefix": "mine" }' });
    expect((await right.run(["tools"])).stdout).toContain("theirs_report_build");
    expect((await right.run([])).stdout).toMatch(/^acme 1\.2\.0: Reports of a quarter\n/);
  });
});

describe("nothing of the folder it is started in is loaded", () => {
  const trap = (name: string) => `import { writeFileSync } from "node:fs"; writeFileSync("loaded-${name}", "");`;
  const hostile = {
    "meanwhile.config.ts": `${trap("config")} export default {};`,
    "acme.config.ts": `${trap("own")} export default {};`,
    "commands/report/build.ts": trap("build"),
    "commands/stranger/one.ts": trap("stranger"),
    "node_modules/meanwhile/index.js": trap("package"),
    "package.json": '{ "name": "evil", "type": "module" }',
  };

  const lines = [
    [["report", "build", "Q3"]],
    [["tools"]],
    [["--help"]],
    [["report", "--help"]],
    [["report", "build", "--help"]],
    [["_complete", "--shell", "zsh", "--", "report", ""]],
    [["_project"]],
    [["stats"]],
    [["setup"]],
    [["report", "build", "Q3", "--async"]],
  ] as const;

  test.each(lines)("by %j", async (words) => {
    const acme = new OwnProgramHere();
    writeFiles(acme.cwd, hostile);
    const { code, stdout, stderr } = await acme.run(words);
    expect({ code, stderr, names: readdirSync(acme.cwd).filter((name) => name.startsWith("loaded-")) }).toMatchObject({
      code: 0,
      names: [],
    });
    expect(`${stdout}${stderr}`).not.toContain("stranger");
  });

  test.each(["--commands=.", "--bundled", "--no-bundled", "--scope=pack", "-C"])("nor by %s", async (word) => {
    const acme = new OwnProgramHere();
    const [option = "", value = "commands"] = word.split("=");
    for (const words of [
      [option, value, "tools"],
      ["serve", option, value],
    ])
      expect(await acme.run(words)).toMatchObject({
        code: 2,
        stderr: expect.stringMatching(/unknown option|takes no/i),
      });
  });

  test.each(["new", "init"])("%s is no word of it", async (verb) => {
    const acme = new OwnProgramHere();
    expect(await acme.run([verb, "a/b"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("Unknown command"),
    });
    expect(readdirSync(acme.cwd)).toEqual([]);
    expect((await acme.run(["--help"])).stdout).not.toMatch(/--commands|--bundled|^ {2}(new|init) /m);
  });
});

describe("commands in code", () => {
  const sum = (name: string | undefined) =>
    defineCommand({
      ...(name !== undefined && { name }),
      summary: "Add",
      effects: "read",
      input: jsonSchema<{ unit?: string }>({
        type: "object",
        properties: { unit: { type: "string", enum: ["euro", "cent"] } },
      }),
      run: ({ unit }) => ({ total: 7, unit }),
    });
  const withSum = (name?: string) => ({ toCommands: (folder: string) => [folder, sum(name)] });
  const inCode = withSum("report sum");

  test("are run, described, completed and listed like those in files", async () => {
    const acme = new OwnProgramHere(inCode);
    expect(await acme.run(["report", "sum", "--unit", "euro", "--quiet"])).toEqual({
      code: 0,
      stdout: "total: 7\nunit: euro\n",
      stderr: "",
    });
    expect((await acme.run(["report", "sum", "--help"])).stdout).toContain("Usage: acme report sum");
    expect((await acme.run(["report"])).stdout).toMatch(/acme report sum +Add/);
    expect((await acme.run(["_complete", "--shell", "zsh", "--", "report", "sum", "--unit", ""])).stdout).toBe(
      "values\neuro\ncent\n",
    );
    const { stdout } = await acme.run(["tools"]);
    expect(stdout).toMatch(/report_build[\s\S]*report_sum +acme report sum/);
  });

  test("are served, and become tasks that a worker runs", async () => {
    const acme = new OwnProgramHere(inCode);
    const client = await acme.connect();
    expect((await client.call("report_sum", { unit: "cent" })).structuredContent?.data).toEqual({
      total: 7,
      unit: "cent",
    });
    expect((await client.call("report_build", { quarter: "Q1" })).structuredContent?.data).toEqual({ built: "Q1" });
    const taskId = (await acme.run(["report", "sum", "--detach"])).stdout.trim();
    expect(await acme.run(["tasks", "result", taskId, "--wait"])).toMatchObject({ code: 0, stdout: "total: 7\n" });
  });

  test("need no folder at all", async () => {
    const acme = new OwnProgramHere({ toCommands: () => [sum("report sum")] });
    expect((await acme.run(["tools"])).stdout).not.toContain("report_build");
    const client = await acme.connect();
    expect((await client.call("report_sum")).structuredContent?.data).toEqual({ total: 7 });
  });

  test("without a name, or twice, are refused in a sentence", async () => {
    expect(() => new OwnProgramHere(withSum())).toThrow("has no name");
    const twice = new OwnProgramHere(withSum("report build"));
    expect(await twice.run(["tools"])).toMatchObject({
      code: 70,
      stderr: expect.stringMatching(/Two commands are called report_build/),
    });
  });
});

describe("setup", () => {
  const entryIn = ({ user }: OwnProgramHere) =>
    JSON.parse(readFileSync(path.join(user, ".claude.json"), "utf8")) as {
      mcpServers: Record<string, { command: string; args: string[]; env?: object }>;
    };

  const launcherIn = (home: string) => readFileSync(path.join(home, "bin/acme"), "utf8");

  test("writes its own name and a launcher of its own, knows them again, and takes them away", async () => {
    const acme = new OwnProgramHere();
    expect(await acme.run(["setup", "claude-code"])).toMatchObject({ code: 0 });
    expect(entryIn(acme).mcpServers).toEqual({
      acme: expect.objectContaining({
        command: path.join(acme.home, "bin/acme"),
        args: ["serve"],
        env: { ACME_HOME: acme.home },
      }),
    });
    const launcher = launcherIn(acme.home);
    expect(launcher).toContain(`\nmw_node='${process.execPath}'\n`);
    expect(launcher).toContain(`\nmw_package='${acme.bin}'\n`);
    expect(launcher).toContain(`ACME_HOME=$mw_home`);
    expect(launcher.replaceAll(acme.bin, "").replaceAll(/mw_range_file=.*|"rangeFile":.*/g, "")).not.toMatch(
      /meanwhile/i,
    );
    expect((await acme.run(["setup", "claude-code"])).stderr).toContain("has acme already");
    await acme.run(["setup", "claude-code", "--remove"]);
    expect(existsSync(path.join(acme.user, ".claude.json"))).toBe(false);
  });

  test("asks npx for the package where npx has fetched it", async () => {
    const acme = new OwnProgramHere({ at: "_npx/1a2b/node_modules/acme-reports" });
    await acme.run(["setup", "claude-code"], { ACME_HOME: "" });
    expect(entryIn(acme).mcpServers.acme).toMatchObject({
      command: path.join(acme.user, ".acme/bin/acme"),
      args: ["serve"],
    });
    expect(launcherIn(path.join(acme.user, ".acme"))).toContain("\nmw_npx='acme-reports@1.2.0'\n");
    expect((await acme.run(["setup", "claude-code"], { ACME_HOME: "" })).stderr).toContain("has acme already");
  });

  test("for a project: by npx, and never fetched", async () => {
    const acme = new OwnProgramHere({ options: { package: "@acme/reports" } });
    const { stderr } = await acme.run(["setup", "claude-code", "--project"]);
    expect(stderr).toContain("npm install --save-dev @acme/reports");
    expect(JSON.parse(readFileSync(path.join(acme.cwd, ".mcp.json"), "utf8"))).toEqual({
      mcpServers: { acme: expect.objectContaining({ command: "npx", args: ["--no", "@acme/reports", "serve"] }) },
    });
  });

  test("leaves an entry of its name alone that starts something else, be it called like its own file", async () => {
    const acme = new OwnProgramHere();
    const other = { mcpServers: { acme: { command: "node", args: ["/opt/other/bin/acme.js", "serve"] } } };
    writeFiles(acme.user, { ".claude.json": JSON.stringify(other) });
    const { code } = await acme.run(["setup", "claude-code"]);
    expect({ code, now: entryIn(acme) }).toEqual({ code: 1, now: other });
  });
});

function tokenIn(home: string): string {
  return readFileSync(path.join(home, "token"), "utf8").trim();
}
