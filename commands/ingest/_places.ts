import { existsSync, readdirSync } from "node:fs";
import { homedir } from "node:os";
import path from "node:path";

/** Where an assistant keeps its history, or a program its notes. */
export interface KnownPlace {
  readonly id: string;
  readonly assistant: string;
  readonly kind: "history" | "notes";
  /** `database` is listed and cannot be ingested. */
  readonly format: "conversation" | "files" | "database";
  readonly path: string;
  /** Which files of it, below the path. */
  readonly pattern: string;
}

interface Entry extends Omit<KnownPlace, "path"> {
  /** Below the user's home; programs with a window keep theirs in one of two folders, by system. */
  readonly path: string;
  readonly isSettings?: true;
}

const settingsFolders = [".config", "Library/Application Support"];

const entries: readonly Entry[] = [
  { id: "claude-code", assistant: "Claude Code", kind: "history", format: "conversation", path: ".claude/projects", pattern: "**/*.jsonl" },
  { id: "claude-code-memory", assistant: "Claude Code", kind: "notes", format: "files", path: ".claude", pattern: "CLAUDE.md" },
  { id: "codex", assistant: "Codex", kind: "history", format: "conversation", path: ".codex/sessions", pattern: "**/*.jsonl" },
  { id: "codex-prompts", assistant: "Codex", kind: "history", format: "conversation", path: ".codex", pattern: "history.jsonl" },
  { id: "codex-memory", assistant: "Codex", kind: "notes", format: "files", path: ".codex", pattern: "AGENTS.md" },
  { id: "gemini-cli", assistant: "Gemini CLI", kind: "history", format: "conversation", path: ".gemini/tmp", pattern: "**/{chats/*,logs,checkpoint*}.json" },
  { id: "gemini-cli-memory", assistant: "Gemini CLI", kind: "notes", format: "files", path: ".gemini", pattern: "GEMINI.md" },
  { id: "opencode", assistant: "opencode", kind: "history", format: "conversation", path: ".local/share/opencode/storage/part", pattern: "**/*.json" },
  { id: "continue", assistant: "Continue", kind: "history", format: "conversation", path: ".continue/sessions", pattern: "*.json" },
  { id: "aider", assistant: "Aider", kind: "history", format: "files", path: "", pattern: ".aider.chat.history.md" },
  {
    id: "copilot-vscode",
    assistant: "GitHub Copilot in VS Code",
    kind: "history",
    format: "conversation",
    path: "Code/User/workspaceStorage",
    pattern: "*/chatSessions/*.json",
    isSettings: true,
  },
  {
    id: "cline",
    assistant: "Cline",
    kind: "history",
    format: "conversation",
    path: "Code/User/globalStorage/saoudrizwan.claude-dev/tasks",
    pattern: "*/api_conversation_history.json",
    isSettings: true,
  },
  { id: "cursor", assistant: "Cursor", kind: "history", format: "database", path: "Cursor/User/globalStorage", pattern: "state.vscdb", isSettings: true },
  { id: "joplin", assistant: "Joplin", kind: "notes", format: "database", path: "joplin-desktop", pattern: "database.sqlite", isSettings: true },
  { id: "chat-export", assistant: "ChatGPT or Claude, exported", kind: "history", format: "conversation", path: "Downloads", pattern: "conversations.json" },
];

/** Notes are kept in folders of any name; they are looked for this deep below the home and its usual places. */
const noteRoots = ["", "Documents", "Notes", "notes", "Dropbox", "Sync"];

/** True for a pattern that looks into folders below. */
export function spansFolders(pattern: string): boolean {
  return pattern.includes("/") || pattern.includes("**");
}

/** Every place that could be on this machine. Only folders' names are looked at. */
export function knownPlaces(): KnownPlace[] {
  const home = homedir();
  const fixed = entries.flatMap(({ isSettings, ...entry }) => {
    const bases = isSettings === true ? settingsFolders : [""];
    return bases.map((base) => ({ ...entry, path: path.join(home, base, entry.path) }));
  });
  return [...fixed.filter((place) => existsSync(place.path)), ...findVaults(home)];
}

/** Folders that Obsidian or Logseq have marked as theirs. */
function findVaults(home: string): KnownPlace[] {
  const found = new Map<string, KnownPlace>();
  for (const root of noteRoots) {
    for (const name of foldersIn(path.join(home, root))) {
      const folder = path.join(home, root, name);
      const program = existsSync(path.join(folder, ".obsidian")) ? "Obsidian" : existsSync(path.join(folder, "logseq", "config.edn")) ? "Logseq" : undefined;
      if (program === undefined || found.has(folder)) continue;
      const id = `${program.toLowerCase()}-${path.relative(home, folder).replaceAll(/[^\p{L}\p{N}]+/gu, "-")}`;
      found.set(folder, { id, assistant: program, kind: "notes", format: "files", path: folder, pattern: "**/*.{md,markdown,canvas,org}" });
    }
  }
  return [...found.values()];
}

function foldersIn(folder: string): string[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isDirectory() && !entry.name.startsWith("."))
      .map(({ name }) => name);
  } catch {
    return []; // Not there, or not ours to look into.
  }
}
