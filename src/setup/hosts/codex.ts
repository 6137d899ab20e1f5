import { inProject, plainEntry, type SetupHost } from "../host.ts";
import { folderFrom, join, type Machine } from "../machine.ts";

/**
 * https://developers.openai.com/codex/mcp ([mcp_servers.<name>]; .codex/config.toml of a project holds once the project
 * is trusted; CODEX_HOME).
 */
export const codex: SetupHost = {
  id: "codex",
  title: "Codex",
  program: "codex",
  signs: (machine) => [folderOf(machine)],
  format: "toml",
  userFile: (machine) => join(machine, folderOf(machine), "config.toml"),
  projectFile: inProject(".codex", "config.toml"),
  place: () => ["mcp_servers"],
  toEntry: plainEntry,
  remote: { url: "url", headers: "http_headers" },
  next: "Start Codex again; /mcp or codex mcp list shows it.",
  projectNext: "Codex reads it once the project is trusted.",
};

function folderOf(machine: Machine): string {
  return folderFrom(machine, "CODEX_HOME", machine.home, ".codex");
}
