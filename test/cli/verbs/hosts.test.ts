import { expect, test } from "vitest";
import { runCli } from "../../helpers/cli.ts";
import { temporaryFolder } from "../../helpers/home.ts";

test.each(["factory-cli", "qwen-cli-mcp-client-probe", "cursor-vscode"])(
  "`hosts` lists the limit of %s as assumed, because nobody has measured it",
  async (name) => {
    const cwd = temporaryFolder();
    const place = { cwd, env: { MEANWHILE_HOME: `${cwd}/home` } };
    const { stdout } = await runCli(["hosts"], place);
    expect(stdout).toMatch(new RegExp(`^${name} +both +30 s +assumed$`, "m"));
    const rows = JSON.parse((await runCli(["hosts", "--json"], place)).stdout) as { name: string }[];
    const row = { limitSeconds: 30, source: "assumed", from: expect.stringMatching(/^assumed: its limit is unknown/) };
    expect(rows.filter((one) => one.name === name)).toEqual([
      expect.objectContaining({ ...row, transport: "stdio" }),
      expect.objectContaining({ ...row, transport: "http" }),
    ]);
  },
);
