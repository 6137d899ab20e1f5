import { plainEntry, type SetupHost } from "../host.ts";
import { folderFrom, join, type Machine, settingsFolder } from "../machine.ts";

/**
 * https://modelcontextprotocol.io/quickstart/user (macOS and Windows; the builds for Linux keep to ~/.config);
 * https://github.com/anthropics/claude-code/issues/26073 (the Windows package reads a folder of its own in place of
 * %APPDATA%).
 */
export const claudeDesktop: SetupHost = {
  id: "claude-desktop",
  title: "Claude Desktop",
  signs: (machine) => [folderOf(machine)],
  format: "json",
  userFile: (machine) => join(machine, folderOf(machine), "claude_desktop_config.json"),
  place: () => ["mcpServers"],
  toEntry: plainEntry,
  remote: { url: "url", headers: "headers" },
  next: "Quit Claude Desktop and start it again; Settings, Developer lists it.",
};

function folderOf(machine: Machine): string {
  const usual = join(machine, settingsFolder(machine), "Claude");
  if (machine.platform !== "win32") return usual;
  const packages = join(machine, folderFrom(machine, "LOCALAPPDATA", machine.home, "AppData", "Local"), "Packages");
  const own = machine
    .list(packages)
    .filter((name) => name.startsWith("Claude_"))
    .map((name) => join(machine, packages, name, "LocalCache", "Roaming", "Claude"));
  return own.find((folder) => machine.isThere(folder)) ?? usual;
}
