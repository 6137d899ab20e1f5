import { plainEntry, type SetupHost } from "../host.ts";
import { folderFrom, join, type Machine, settingsFolder } from "../machine.ts";

/**
 * https://docs.cline.bot/mcp/mcp-overview (the CLI: ~/.cline/data/settings/cline_mcp_settings.json,
 * CLINE_MCP_SETTINGS_PATH); CLI 3.0.65 also takes CLINE_DIR and CLINE_DATA_DIR. The extension of VS Code keeps a file
 * of the same name in its own storage. No file per project.
 */
export const cline: SetupHost = {
  id: "cline",
  title: "Cline",
  program: "cline",
  signs: (machine) => [folderOf(machine), storageOf(machine)],
  format: "json",
  userFile: (machine) =>
    machine.env.CLINE_MCP_SETTINGS_PATH || join(machine, settingsOf(machine), "cline_mcp_settings.json"),
  moreUserFiles: (machine) => [join(machine, storageOf(machine), "settings", "cline_mcp_settings.json")],
  place: () => ["mcpServers"],
  toEntry: plainEntry,
  remote: { url: "url", headers: "headers", type: "streamableHttp", sseType: "sse" },
  next: "The MCP Servers page of Cline, or cline config mcp, shows it.",
};

function folderOf(machine: Machine): string {
  return folderFrom(machine, "CLINE_DIR", machine.home, ".cline");
}

/** The CLI's, unless only the extension is there. */
function settingsOf(machine: Machine): string {
  const isExtensionAlone = !machine.isThere(folderOf(machine)) && machine.isThere(storageOf(machine));
  return join(
    machine,
    isExtensionAlone ? storageOf(machine) : folderFrom(machine, "CLINE_DATA_DIR", folderOf(machine), "data"),
    "settings",
  );
}

function storageOf(machine: Machine): string {
  return join(machine, settingsFolder(machine), "Code", "User", "globalStorage", "saoudrizwan.claude-dev");
}
