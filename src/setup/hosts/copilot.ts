import { inProject, type SetupHost, stdioEntry } from "../host.ts";
import { folderFrom, join, type Machine } from "../machine.ts";

/**
 * https://code.visualstudio.com/docs/agents/reference/mcp-configuration (mcp-config.json in $COPILOT_HOME or ~/.copilot; .mcp.json of a workspace,
 * which Claude Code reads too, so that the entry has to suit both: type is stdio, not local).
 */
export const copilot: SetupHost = {
  id: "copilot",
  title: "Copilot CLI",
  program: "copilot",
  signs: (machine) => [folderOf(machine)],
  format: "json",
  userFile: (machine) => join(machine, folderOf(machine), "mcp-config.json"),
  projectFile: inProject(".mcp.json"),
  place: () => ["mcpServers"],
  toEntry: (launch) => ({ ...stdioEntry(launch), tools: ["*"] }),
  remote: { url: "url", headers: "headers", type: "http", sseType: "sse" },
  next: "Start Copilot CLI again; /mcp show lists it.",
  projectNext: "Copilot CLI reads it once the folder is trusted.",
};

function folderOf(machine: Machine): string {
  return folderFrom(machine, "COPILOT_HOME", machine.home, ".copilot");
}
