import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { writeFiles } from "../../helpers/home.ts";
import { commandFile, OwnProgram } from "../../helpers/own-program.ts";

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

  test("by serve, whose daemon is one for all folders and stands in none of them", async () => {
    const acme = new OwnProgram();
    writeFiles(acme.cwd, hostile);
    const client = await acme.connect();
    const { tools } = (await client.request("tools/list")).result as { tools: { name: string }[] };
    expect(tools.map(({ name }) => name).filter((name) => !name.startsWith("task_"))).toEqual(["report_build"]);
    expect((await client.call("report_build", { quarter: "Q3" })).structuredContent?.data).toEqual({ built: "Q3" });
    expect(readdirSync(acme.cwd).filter((name) => name.startsWith("loaded-"))).toEqual([]);
    const { stdout } = await acme.run(["daemon", "status", "--json"]);
    expect(JSON.parse(stdout)).toMatchObject({ daemons: [{ cwd: "/", version: "1.2.0" }] });
  });

  test("by a hook, which gets the SDK that lies beside its program", async () => {
    const hook = 'mcp: (server) => server.registerTool("by_hand", {}, () => ({ content: [] })),';
    const acme = new OwnProgram({ options: hook });
    const sdk = "node_modules/@modelcontextprotocol/server";
    const manifest = '{ "name": "@modelcontextprotocol/server", "exports": { ".": "./a.mjs", "./stdio": "./a.mjs" } }';
    for (const folder of [acme.cwd, path.dirname(acme.cwd)])
      writeFiles(folder, { [`${sdk}/a.mjs`]: trap("sdk"), [`${sdk}/package.json`]: manifest });
    const client = await acme.connect({ words: ["serve", "--in-process"] });
    const { tools } = (await client.request("tools/list")).result as { tools: { name: string }[] };
    expect(readdirSync(acme.cwd)).toEqual(["node_modules"]);
    expect(tools.map(({ name }) => name)).toContain("by_hand");
  });
});

test("a run in a process of its own belongs to the same program", async () => {
  const asks = commandFile(
    'home: task.home, known: (await progressOf("no")).message, names: Object.keys(process.env).filter((name) => name.startsWith("MEANWHILE_"))',
    'isolation: "process",',
    'import { progressOf } from "meanwhile";',
  );
  const acme = new OwnProgram({ files: { "commands/report/apart.js": asks } });
  const client = await acme.connect();
  const { structuredContent } = await client.call("report_apart", { quarter: "Q3" });
  expect(structuredContent?.data).toEqual({
    home: acme.home,
    known: expect.stringContaining("token_not_found"),
    names: ["MEANWHILE_RUN"],
  });
  expect(readdirSync(acme.user)).toEqual([".acme"]);
});

test("what another program's run starts is not that run's: its mark is lost", async () => {
  const asks = commandFile("mark: process.env.MEANWHILE_RUN ?? null");
  const acme = new OwnProgram({ files: { "commands/report/mark.js": asks }, env: { MEANWHILE_RUN: "somebody's" } });
  const client = await acme.connect();
  expect((await client.call("report_mark", { quarter: "Q3" })).structuredContent?.data).toEqual({ mark: null });
  const taskId = (await acme.run(["report", "mark", "Q3", "--detach"])).stdout.trim();
  expect((await acme.run(["tasks", "result", taskId, "--wait", "--json"])).stdout).toContain('"mark": null');
});

test("another version, or a move, is another daemon; the tasks are known to both", async () => {
  const acme = new OwnProgram();
  const taskId = (await acme.run(["report", "build", "Q3", "--detach"])).stdout.trim();
  const bin = path.join(acme.folder, "bin/acme.js");
  writeFiles(acme.folder, { "bin/acme.js": readFileSync(bin, "utf8").replace("1.2.0", "1.3.0") });
  expect((await acme.run(["--version"])).stdout).toBe("1.3.0\n");
  expect(await acme.run(["tasks", "result", taskId, "--wait"])).toMatchObject({ code: 0, stdout: "built: Q3\n" });
});
