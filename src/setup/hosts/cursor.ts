import { inHome, inProject, type SetupHost, stdioEntry } from "../host.ts";

/** https://cursor.com/docs/mcp (~/.cursor/mcp.json for everything, .cursor/mcp.json for a project). */
export const cursor: SetupHost = {
  id: "cursor",
  title: "Cursor",
  program: "cursor",
  signs: (machine) => [inHome(".cursor")(machine)],
  format: "json",
  userFile: inHome(".cursor", "mcp.json"),
  projectFile: inProject(".cursor", "mcp.json"),
  place: () => ["mcpServers"],
  toEntry: stdioEntry,
  remote: { url: "url", headers: "headers" },
  next: "Start Cursor again and switch it on in its list of MCP servers.",
};
