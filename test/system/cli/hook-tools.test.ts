import { expect, test } from "vitest";
import { OwnProgram } from "../../helpers/own-program.ts";

const hook = `mcp: (server) => server.registerTool("by_hand", { description: "By hand" }, () => ({ content: [{ type: "text", text: "by hand" }] })),`;

test("a program made with createCli runs the tools of its hook, and lists them beside those in files and in code", async () => {
  const inCode = `${hook} commands: [commands, defineCommand({ name: "report sum", summary: "Add", run: () => ({ total: 7 }) })],`;
  const acme = new OwnProgram({ options: inCode });
  expect(await acme.run(["by_hand", "--quiet"])).toEqual({ code: 0, stdout: "by hand\n", stderr: "" });
  expect(await acme.run(["by_foot"])).toMatchObject({ code: 2 });
  const { stdout } = await acme.run(["tools"]);
  expect(stdout).toMatch(/\nRegistered by hand\nby_hand +acme by_hand +By hand\n/);
  const listed = JSON.parse((await acme.run(["tools", "--json"])).stdout) as { tools: { name: string }[] };
  expect(listed.tools).toMatchObject([
    { name: "by_hand", source: "the `mcp` hook of acme" },
    { name: "report_build", source: expect.stringContaining("commands") },
    { name: "report_sum", source: "the commands in code", command: "acme report sum" },
  ]);
  expect((await acme.run(["--help"])).stdout).toMatch(/Registered by hand\n {2}by_hand\n/);
});
