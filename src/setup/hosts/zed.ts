import { inProject, plainEntry, type SetupHost } from "../host.ts";
import { folderFrom, join, type Machine } from "../machine.ts";

/**
 * https://zed.dev/docs/ai/mcp (context_servers in settings.json) and https://zed.dev/docs/configuring-zed (where that
 * is; ~/.config also on macOS); https://github.com/zed-industries/zed/pull/27633 and #44887 (.zed/settings.json of a
 * project, once the project is trusted).
 */
export const zed: SetupHost = {
  id: "zed",
  title: "Zed",
  program: "zed",
  signs: (machine) => [folderOf(machine)],
  format: "json",
  userFile: (machine) => join(machine, folderOf(machine), "settings.json"),
  projectFile: inProject(".zed", "settings.json"),
  place: () => ["context_servers"],
  toEntry: plainEntry,
  remote: { url: "url", headers: "headers" },
  next: "Zed has it at once; the settings of its agent panel show a green dot.",
  projectNext: "Zed reads it once the project is trusted.",
};

function folderOf(machine: Machine): string {
  if (machine.platform === "win32")
    return join(machine, folderFrom(machine, "APPDATA", machine.home, "AppData", "Roaming"), "Zed");
  if (machine.platform === "darwin") return join(machine, machine.home, ".config", "zed");
  return join(machine, folderFrom(machine, "XDG_CONFIG_HOME", machine.home, ".config"), "zed");
}
