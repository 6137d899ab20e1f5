import { type HostProfile, knownHosts } from "../../../host/profiles.ts";
import { legacyRevision, modernRevision, type TaskGeneration } from "../../../wire/revisions.ts";

/** What else is known of a host: whether progress helps there, which tasks it takes, and what its user can set. */
interface HostNotes {
  /** `clientInfo.name`, as in src/host/profiles.ts. */
  readonly name: string;
  /**
   * What progress does for a call: starts its time anew, nothing, nothing because it is never asked for, or nobody
   * knows.
   */
  readonly progress: "extends" | "ignored" | "never-asked" | "unknown";
  /** Whose tasks it takes. */
  readonly tasks?: TaskGeneration;
  /** What lets a call take an hour there. Undefined: no setting is known. */
  readonly setting?: string;
  /** Where the setting, or that there is none, is known from. */
  readonly source: string;
}

const notes: readonly HostNotes[] = [
  {
    name: "claude-code",
    progress: "extends",
    tasks: modernRevision,
    setting:
      '"timeout": 3600000 in the server\'s entry of .mcp.json, or MCP_TOOL_TIMEOUT=3600000 (a hard limit of an hour then, progress or not)',
    source:
      "code.claude.com/docs/en/mcp, quoted in anthropics/claude-code#76283; that it is hard then was measured with 2.1.325",
  },
  {
    name: "copilot-cli",
    progress: "extends",
    setting:
      '"timeout": 3600000 in the server\'s entry of ~/.copilot/mcp-config.json (lost again when the server sends tools/list_changed)',
    source: "github/copilot-cli#172 and #1378",
  },
  {
    name: "codex-mcp-client",
    progress: "ignored",
    setting: "tool_timeout_sec = 3600 below [mcp_servers.<name>] in ~/.codex/config.toml",
    source: "Codex's configuration reference; the field is in the program of 0.166.0",
  },
  {
    name: "gemini-cli-mcp-client",
    progress: "ignored",
    setting: '"timeout": 3600000 in mcpServers.<name> of ~/.gemini/settings.json',
    source: "docs/tools/mcp-server.md of Gemini CLI 0.61.0: request timeout in milliseconds, default 600,000",
  },
  {
    name: "opencode",
    progress: "extends",
    setting: '"timeout": 3600000 in mcp.<name> of opencode.json, or experimental.mcp_timeout for all servers',
    source: "the program of 1.18.34, which passes it to every tool call",
  },
  {
    name: "kilo",
    progress: "unknown",
    setting: '"timeout": 3600000 in mcp.<name> of kilo.json',
    source:
      "Kilo-Org/kilocode, packages/kilo-docs (Network Timeout) and packages/opencode/src/mcp/catalog.ts, which passes it to every tool call",
  },
  {
    name: "@cline/core",
    progress: "never-asked",
    setting: '"timeout": 3600 (seconds, the most there is) in the server\'s entry of cline_mcp_settings.json',
    source: "docs.cline.bot/mcp/configuring-mcp-servers; the program of @cline/core 0.0.86 (Cline CLI 3.0.65)",
  },
  {
    name: "continue-cli-client",
    progress: "never-asked",
    source: "the program of 1.5.47, which calls tools with its SDK's 60 s and nothing to set",
  },
  { name: "factory-cli", progress: "unknown", source: "nothing is known" },
  {
    name: "qwen-cli-mcp-client-probe",
    progress: "unknown",
    setting:
      '"timeout": 3600000 in mcpServers.<name> and "mcp": { "toolIdleTimeoutMs": 3600000 } in ~/.qwen/settings.json',
    source: "the program of 0.24.4; not measured",
  },
  { name: "claude-ai", progress: "ignored", source: "anthropics/claude-code#22542 and #64614: no setting is honoured" },
  {
    name: "Visual Studio Code",
    progress: "unknown",
    tasks: legacyRevision,
    source: "public threads: it waits, and there is nothing to set (microsoft/vscode#311595)",
  },
  { name: "cursor-vscode", progress: "unknown", source: "nothing is known" },
  { name: "jcode", progress: "never-asked", source: "1jehuang/jcode#802: 30 s for every request, and nothing to set" },
  { name: "Jan Streamable Client", progress: "unknown", source: "janhq/jan#6733: no setting" },
  {
    name: "Zed",
    progress: "ignored",
    setting: '"context_server_timeout": 600 (seconds, the most there is) in settings.json',
    source: "zed-industries/zed PR 45378 and #56774",
  },
  { name: "reasonix", progress: "unknown", source: "public threads: 60 s, and nothing to set" },
];

/** A host as this suite sees it. */
export interface HostSettings {
  readonly profile: Omit<HostProfile, "name">;
  readonly notes: HostNotes;
}

const profiled: readonly HostSettings[] = knownHosts.map((profile) => ({
  profile,
  notes: notes.find(({ name }) => name === profile.name) ?? {
    name: profile.name,
    progress: "unknown",
    source: "nothing is known",
  },
}));

const hard = (seconds: number) => ({
  stdio: { limitMs: seconds * 1000, isExtended: false },
  http: { limitMs: seconds * 1000, isExtended: false },
});

/**
 * Hosts whose clientInfo.name nobody has seen, so that no server can know them by it: what they do with a slow call is
 * known all the same.
 */
const nameless: readonly HostSettings[] = [
  {
    profile: { title: "Amazon Q", limits: hard(60), source: "public threads" },
    notes: { name: "", progress: "never-asked", source: "public threads: 60 s, no progress token, and nothing to set" },
  },
  {
    profile: { title: "Antigravity CLI", limits: hard(180), source: "public threads" },
    notes: { name: "", progress: "ignored", source: "public threads: 180 s, progress or not, and nothing to set" },
  },
  {
    profile: { title: "Copilot for JetBrains", limits: hard(30), source: "public threads" },
    notes: { name: "", progress: "unknown", source: "microsoft/copilot-intellij-feedback#1935: 30 s" },
  },
  {
    profile: { title: "ZCode", limits: hard(30), source: "public threads" },
    notes: { name: "", progress: "unknown", source: "zai-org/feedback#30: 30 s" },
  },
];

/** Every known host, in the order of the profiles. */
export const hostsKnown: readonly HostSettings[] = [...profiled, ...nameless];
