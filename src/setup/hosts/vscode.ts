import { inProject, type SetupHost, stdioEntry } from "../host.ts";
import { join, type Machine, settingsFolder } from "../machine.ts";

/**
 * https://code.visualstudio.com/docs/agents/reference/mcp-configuration (mcp.json of the user's profile,
 * .vscode/mcp.json of a workspace; the key is `servers`).
 */
export const vscode: SetupHost = {
  id: "vscode",
  title: "VS Code",
  program: "code",
  signs: (machine) => [join(machine, folderOf(machine), "User")],
  format: "json",
  userFile: (machine) => join(machine, folderOf(machine), "User", "mcp.json"),
  projectFile: inProject(".vscode", "mcp.json"),
  moreUserFiles: filesOfProfiles,
  place: () => ["servers"],
  toEntry: stdioEntry,
  remote: { url: "url", headers: "headers", type: "http", sseType: "sse" },
  next: "In VS Code run MCP: List Servers and start it there.",
  projectNext: "VS Code asks whether you trust it when it is first started.",
};

/** Each profile but the default one has a folder. */
function filesOfProfiles(machine: Machine): string[] {
  const profiles = join(machine, folderOf(machine), "User", "profiles");
  return machine.list(profiles).map((name) => join(machine, profiles, name, "mcp.json"));
}

function folderOf(machine: Machine): string {
  return join(machine, settingsFolder(machine), "Code");
}
