import { type FolderPlace, inProject, type SetupHost, stdioEntry } from "../host.ts";
import { folderFrom, join, type Machine } from "../machine.ts";

/**
 * https://code.claude.com/docs/en/mcp (scopes: user in ~/.claude.json, project in .mcp.json);
 * https://github.com/anthropics/claude-code/issues/48448 (CLAUDE_CONFIG_DIR moves .claude.json into that folder).
 */
export const claudeCode: SetupHost = {
  id: "claude-code",
  title: "Claude Code",
  program: "claude",
  signs: (machine) => [userFile(machine), folderFrom(machine, "CLAUDE_CONFIG_DIR", machine.home, ".claude")],
  format: "json",
  userFile,
  projectFile: inProject(".mcp.json"),
  place: () => ["mcpServers"],
  toEntry: stdioEntry,
  folderPlaces,
  managedFile,
  remote: { url: "url", headers: "headers", type: "http", sseType: "sse" },
  next: "In a new session /mcp shows it; in a shell, claude mcp list.",
  projectNext: "Claude Code asks once, at the start of a session in this folder, whether to use it.",
};

/** `claude mcp add` without a scope writes here: servers of this user in one folder. */
function folderPlaces(config: unknown): FolderPlace[] {
  const { projects } = (config ?? {}) as { projects?: unknown };
  if (typeof projects !== "object" || projects === null) return [];
  return Object.keys(projects).map((folder) => ({ folder, keys: ["projects", folder, "mcpServers"] }));
}

/** https://code.claude.com/docs/en/mcp (managed-mcp.json in the system's folder). */
function managedFile(machine: Machine): string {
  const folders = {
    linux: "/etc/claude-code",
    darwin: "/Library/Application Support/ClaudeCode",
    win32: join(machine, folderFrom(machine, "ProgramFiles", "C:\\Program Files"), "ClaudeCode"),
  };
  return join(machine, folders[machine.platform], "managed-mcp.json");
}

function userFile(machine: Machine): string {
  return join(machine, machine.env.CLAUDE_CONFIG_DIR || machine.home, ".claude.json");
}
