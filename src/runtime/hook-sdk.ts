import { loadAsOf } from "../command/load.ts";
import { RuntimeError } from "../errors.ts";
import type { Sdk } from "../mcp/hook-host.ts";

/** What an author's `mcp` hook is handed its servers from: the author's own copy of the SDK, or what lies beside us. */
export async function loadSdk(configFile = ""): Promise<Sdk> {
  const name = "@modelcontextprotocol/server";
  try {
    const [{ McpServer }, { serveStdio }] = (await Promise.all([
      loadAsOf(configFile, name),
      loadAsOf(configFile, `${name}/stdio`),
    ] as Promise<Sdk>[])) as [Sdk, Sdk];
    return { McpServer, serveStdio };
  } catch (cause) {
    throw new RuntimeError(
      "CONFIG_INVALID",
      `The \`mcp\` hook of ${configFile} needs ${name}; install it in the project: npm install ${name}`,
      {
        cause,
        forClients: `This server's \`mcp\` hook needs ${name}, which is not installed; whoever runs it can: npm install ${name}`,
      },
    );
  }
}
