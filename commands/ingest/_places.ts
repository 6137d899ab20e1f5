import { existsSync, readdirSync } from "node:fs";
import { homedir } from "node:os";
import path from "node:path";

/** Where an assistant keeps its history, or a program its notes. */
export interface KnownPlace {
  readonly id: string;
  /** Whose it is, for programs. */
  readonly provider: string;
  /** Whose it is, for people. */
  readonly assistant: string;
  readonly kind: "history" | "notes";
  /** `database` is listed and cannot be ingested. */
  readonly format: "conversation" | "files" | "database";
  readonly path: string;
  /** Which files of it, below the path; empty when the path is a file. */
  readonly pattern: string;
  /** The project that all of it belongs to; empty where its files say that, or nothing does. */
  readonly project: string;
}

interface Entry extends Omit<KnownPlace, "path" | "provider" | "project"> {
  /** Default: its id. */
  readonly provider?: string;
  /** Below the user's home; programs with a window keep theirs in one of two folders, by system. */
  readonly path: string;
  readonly isSettings?: true;
  readonly layout?: Layout;
}

/**
 * Which part of a file's path below its place names the project, and which the session: counted from 0, or the file's
 * own name.
 */
interface Layout {
  readonly project?: number;
  readonly session: number | "name";
}

/** What a file belongs to; empty where nothing says it. */
export interface Belonging {
  readonly project: string;
  readonly session: string;
}

const settingsFolders = [".config", "Library/Application Support"];

const entries: readonly Entry[] = [
  {
    id: "claude-code",
    assistant: "Claude Code",
    kind: "history",
    format: "conversation",
    path: ".claude/projects",
    pattern: "**/*.jsonl",
    layout: { project: 0, session: "name" },
  },
  {
    id: "claude-code-memory",
    provider: "claude-code",
    assistant: "Claude Code",
    kind: "notes",
    format: "files",
    path: ".claude",
    pattern: "CLAUDE.md",
  },
  {
    id: "codex",
    assistant: "Codex",
    kind: "history",
    format: "conversation",
    path: ".codex/sessions",
    pattern: "**/*.jsonl",
    layout: { session: "name" },
  },
  {
    id: "codex-prompts",
    provider: "codex",
    assistant: "Codex",
    kind: "history",
    format: "conversation",
    path: ".codex",
    pattern: "history.jsonl",
  },
  {
    id: "codex-memory",
    provider: "codex",
    assistant: "Codex",
    kind: "notes",
    format: "files",
    path: ".codex",
    pattern: "AGENTS.md",
  },
  {
    id: "gemini-cli",
    assistant: "Gemini CLI",
    kind: "history",
    format: "conversation",
    path: ".gemini/tmp",
    pattern: "**/{chats/*,logs,checkpoint*}.json",
    layout: { project: 0, session: "name" },
  },
  {
    id: "gemini-cli-memory",
    provider: "gemini-cli",
    assistant: "Gemini CLI",
    kind: "notes",
    format: "files",
    path: ".gemini",
    pattern: "GEMINI.md",
  },
  {
    id: "opencode",
    assistant: "opencode",
    kind: "history",
    format: "conversation",
    path: ".local/share/opencode/storage/part",
    pattern: "**/*.json",
    layout: { session: 0 },
  },
  {
    id: "continue",
    assistant: "Continue",
    kind: "history",
    format: "conversation",
    path: ".continue/sessions",
    pattern: "*.json",
    layout: { session: "name" },
  },
  {
    id: "copilot-vscode",
    assistant: "GitHub Copilot in VS Code",
    kind: "history",
    format: "conversation",
    path: "Code/User/workspaceStorage",
    pattern: "*/chatSessions/*.json",
    isSettings: true,
    layout: { project: 0, session: "name" },
  },
  {
    id: "cline",
    assistant: "Cline",
    kind: "history",
    format: "conversation",
    path: "Code/User/globalStorage/saoudrizwan.claude-dev/tasks",
    pattern: "*/api_conversation_history.json",
    isSettings: true,
    layout: { session: 0 },
  },
  {
    id: "cursor",
    assistant: "Cursor",
    kind: "history",
    format: "database",
    path: "Cursor/User/globalStorage",
    pattern: "state.vscdb",
    isSettings: true,
  },
  {
    id: "joplin",
    assistant: "Joplin",
    kind: "notes",
    format: "database",
    path: "joplin-desktop",
    pattern: "database.sqlite",
    isSettings: true,
  },
  {
    id: "chat-export",
    assistant: "ChatGPT or Claude, exported",
    kind: "history",
    format: "conversation",
    path: "Downloads",
    pattern: "conversations.json",
  },
];

/** Notes are kept in folders of any name; they are looked for this deep below the home and its usual places. */
const noteRoots = ["", "Documents", "Notes", "notes", "Dropbox", "Sync"];

/** True for a pattern that looks into folders below. */
export function spansFolders(pattern: string): boolean {
  return pattern.includes("/") || pattern.includes("**");
}

/** Every place that could be below a folder, which is the user's home or was somebody's. Only names are looked at. */
export function knownPlaces(base: string): KnownPlace[] {
  const fixed = entries.flatMap(({ isSettings, layout: _layout, ...entry }) => {
    const bases = isSettings === true ? settingsFolders : [""];
    return bases.map((between) => ({
      provider: entry.id,
      project: "",
      ...entry,
      path: path.join(base, between, entry.path),
    }));
  });
  const all = [...fixed.filter((place) => existsSync(place.path)), ...findVaults(base)];
  return base === homedir() ? all : all.map((place) => ({ ...place, id: `${place.id}@${slugOf(base)}` }));
}

/** What a file of a place belongs to, by its path below it. */
export function belongingOf({ id, project }: Pick<KnownPlace, "id" | "project">, below: string): Belonging {
  const layout = layoutOf(id);
  if (layout === undefined) return { project, session: "" };
  const parts = below.split("/");
  const name = path.parse(parts.at(-1) ?? "").name;
  return {
    project: layout.project === undefined ? project : (parts[layout.project] ?? ""),
    session: layout.session === "name" ? name : (parts[layout.session] ?? ""),
  };
}

/** True for those whose files are told apart by project before they are told apart by session. */
export function hasProjects(id: string): boolean {
  return layoutOf(id)?.project !== undefined;
}

/** What stands behind an @ says in which root it was found. */
function layoutOf(id: string): Layout | undefined {
  const [known] = id.split("@");
  return entries.find((entry) => entry.id === known)?.layout;
}

/** Words with hyphens between them, for an id. */
export function slugOf(text: string): string {
  return text.replaceAll(/[^\p{L}\p{N}]+/gu, "-").replaceAll(/^-+|-+$/g, "");
}

/** Folders that Obsidian or Logseq have marked as theirs. */
function findVaults(home: string): KnownPlace[] {
  const found = new Map<string, KnownPlace>();
  for (const root of noteRoots) {
    for (const name of foldersIn(path.join(home, root))) {
      const folder = path.join(home, root, name);
      const program = existsSync(path.join(folder, ".obsidian"))
        ? "Obsidian"
        : existsSync(path.join(folder, "logseq", "config.edn"))
          ? "Logseq"
          : undefined;
      if (program === undefined || found.has(folder)) continue;
      const id = `${program.toLowerCase()}-${path.relative(home, folder).replaceAll(/[^\p{L}\p{N}]+/gu, "-")}`;
      found.set(folder, {
        id,
        provider: program.toLowerCase(),
        assistant: program,
        kind: "notes",
        format: "files",
        path: folder,
        pattern: "**/*.{md,markdown,canvas,org}",
        project: name,
      });
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
