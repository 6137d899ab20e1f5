import { expect, test } from "vitest";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";
import { openServer } from "../helpers/server.ts";

/** How a project's server introduces itself to clients of every revision. */

const say = `import { defineCommand } from "meanwhile";
export default defineCommand({ summary: "x", run: () => ({}) });
`;
const project = { "package.json": '{ "version": "1.4.2" }', "commands/a/b.ts": say };

test.each([
  ["the version in its package.json", {}, "1.4.2"],
  ["the version in its config", { "meanwhile.config.json": '{ "version": "2.0" }' }, "2.0"],
])("reports %s", async (_, more, version) => {
  const cwd = writeFiles(temporaryFolder(), { ...project, ...more });
  const server = await openServer({ in: "memory", projectCommands: "alone", cwd });
  for (const revision of ["2025-06-18", "2025-11-25", "2026-07-28"]) {
    const client = await server.client({ name: "c", revision, capabilities: {} });
    const { result } = await client.request("tools/list");
    const info = client.initialized.serverInfo ?? result?._meta?.["io.modelcontextprotocol/serverInfo"];
    expect(info, revision).toMatchObject({ name: "meanwhile", version });
  }
});
