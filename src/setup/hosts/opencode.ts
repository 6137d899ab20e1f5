import type { Entry, Launch, SetupHost } from "../host.ts";
import { firstThere, folderFrom, join, type Machine } from "../machine.ts";

/**
 * https://opencode.ai/docs/config (opencode.json or opencode.jsonc, in ~/.config/opencode or in the project;
 * OPENCODE_CONFIG) and https://opencode.ai/docs/migrate-v1 (version 2 reads what version 1 reads, and has mcp.servers
 * beside it).
 */
export const opencode: SetupHost = {
  id: "opencode",
  title: "opencode",
  program: "opencode",
  signs: (machine) => [folderOf(machine)],
  format: "json",
  userFile: (machine) => machine.env.OPENCODE_CONFIG || fileIn(machine, folderOf(machine)),
  projectFile: (machine) => fileIn(machine, machine.project),
  place: (config) => (hasServers(config) ? ["mcp", "servers"] : ["mcp"]),
  toEntry,
  remote: { url: "url", headers: "headers", type: "remote", sseType: "remote" },
  next: "opencode mcp list shows it.",
};

/** On every system the same, also on Windows. */
function folderOf(machine: Machine): string {
  return join(machine, folderFrom(machine, "XDG_CONFIG_HOME", machine.home, ".config"), "opencode");
}

function fileIn(machine: Machine, folder: string): string {
  return firstThere(machine, [join(machine, folder, "opencode.json"), join(machine, folder, "opencode.jsonc")]);
}

/** True in the shape of version 2; a server that is called "servers" has a type. */
function hasServers(config: unknown): boolean {
  const servers = (config as { mcp?: { servers?: unknown } } | undefined)?.mcp?.servers;
  return typeof servers === "object" && servers !== null && typeof (servers as { type?: unknown }).type !== "string";
}

function toEntry({ command, args, env }: Launch): Entry {
  return {
    type: "local",
    command: [command, ...args],
    enabled: true,
    ...(Object.keys(env).length > 0 && { environment: env }),
  };
}
