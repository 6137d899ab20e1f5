import { inHome, plainEntry, type SetupHost } from "../host.ts";

/** https://docs.windsurf.com/windsurf/cascade/mcp (one file for everything; none per project). */
export const windsurf: SetupHost = {
  id: "windsurf",
  title: "Windsurf",
  program: "windsurf",
  signs: (machine) => [inHome(".codeium", "windsurf")(machine)],
  format: "json",
  userFile: inHome(".codeium", "windsurf", "mcp_config.json"),
  place: () => ["mcpServers"],
  toEntry: plainEntry,
  remote: { url: "serverUrl", headers: "headers" },
  next: "Refresh the MCP servers in Cascade, or start Windsurf again.",
};
