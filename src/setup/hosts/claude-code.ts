import { inProject, type SetupHost, stdioEntry } from "../host.ts";
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
  otherPlaces: placesOfProject,
  remote: { url: "url", headers: "headers", type: "http", sseType: "sse" },
  next: "In a new session /mcp shows it; in a shell, claude mcp list.",
  projectNext: "Claude Code asks once, at the start of a session in this folder, whether to use it.",
};

/** `claude mcp add` without a scope writes here: servers of this user in one folder. */
function placesOfProject(config: unknown, { project }: Machine): string[][] {
  const { projects } = (config ?? {}) as { projects?: Readonly<Record<string, unknown>> };
  const known = [project, project.replaceAll("\\", "/")].find((folder) => Object.hasOwn(projects ?? {}, folder));
  return known === undefined ? [] : [["projects", known, "mcpServers"]];
}

function userFile(machine: Machine): string {
  return join(machine, machine.env.CLAUDE_CONFIG_DIR || machine.home, ".claude.json");
}
