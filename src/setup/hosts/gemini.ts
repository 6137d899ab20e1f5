import { inHome, inProject, plainEntry, type SetupHost } from "../host.ts";

/**
 * https://geminicli.com/docs/reference/configuration (~/.gemini/settings.json, .gemini/settings.json of a project; key
 * mcpServers).
 */
export const gemini: SetupHost = {
  id: "gemini",
  title: "Gemini CLI",
  program: "gemini",
  signs: (machine) => [inHome(".gemini", "settings.json")(machine)],
  format: "json",
  userFile: inHome(".gemini", "settings.json"),
  projectFile: inProject(".gemini", "settings.json"),
  place: () => ["mcpServers"],
  toEntry: plainEntry,
  remote: { url: "httpUrl", headers: "headers" },
  next: "Start Gemini CLI again; /mcp shows it.",
  projectNext: "Gemini CLI reads it once the folder is trusted.",
};
