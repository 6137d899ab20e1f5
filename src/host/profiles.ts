/** How long a host waits for the answer to one tool call. */
export interface HostLimit {
  /** It cuts the call after this long; undefined: it waits. */
  readonly limitMs: number | undefined;
  /** Progress starts the time anew. */
  readonly isExtended: boolean;
  /** Nobody has measured it: the figures are those of an unknown host. */
  readonly isAssumed?: boolean;
  /** Calls that were given up have shown it. */
  readonly isLearned?: boolean;
}

/** What one MCP host does with a slow call. */
export interface HostProfile {
  /** What it calls itself: `clientInfo.name`. */
  readonly name: string;
  readonly title: string;
  readonly limits: { readonly stdio: HostLimit; readonly http: HostLimit };
  /** Where the limits come from; starts with `assumed` where they are those of an unknown host. */
  readonly source: string;
}

/** What a user's config says about a host; it holds for both doors. */
export interface HostOverride {
  readonly limitSeconds?: number;
  readonly isExtended?: boolean;
}

const hard = (seconds: number): HostLimit => ({ limitMs: seconds * 1000, isExtended: false });
const idle = (seconds: number): HostLimit => ({ limitMs: seconds * 1000, isExtended: true });
const waits: HostLimit = { limitMs: undefined, isExtended: false };
/** Several hosts cut a call after 30 s. */
const assumed: HostLimit = { ...hard(30), isAssumed: true };
const both = (limit: HostLimit) => ({ stdio: limit, http: limit });

/** What is assumed of a host whose name is in no table. */
export const unknownHost: HostProfile = {
  name: "an unknown host",
  title: "an unknown host",
  limits: both(assumed),
  source: "assumed: several hosts cut a call after 30 s",
};

/** What is assumed of a client without a name, or with the default name of its SDK. */
export const sdkClient: HostProfile = {
  name: "an SDK's client",
  title: "an SDK's client",
  limits: both({ ...hard(60), isAssumed: true }),
  source: "assumed: the default time limit of the official SDKs",
};

/** The names that clients of an SDK have by default: Python, Rust, Java. Other SDKs ask their user for a name. */
const sdkNames: ReadonlySet<string> = new Set(["mcp", "rmcp", "Java SDK MCP Client"]);

/** False for a client without a name, or with the default name of its SDK. Such clients have nothing in common. */
export function isNamed(name: string | undefined): name is string {
  const trimmed = name?.trim() ?? "";
  return trimmed !== "" && !sdkNames.has(trimmed);
}

/** Every host we know by name. */
export const knownHosts: readonly HostProfile[] = [
  {
    name: "claude-code",
    title: "Claude Code",
    // The same in its interactive mode and with `-p`; an explicit MCP_TOOL_TIMEOUT makes it hard, which the user has to
    // tell us.
    limits: { stdio: idle(1800), http: idle(300) },
    source: "measured 2026-11, version 2.1.325",
  },
  { name: "copilot-cli", title: "Copilot CLI", limits: both(idle(180)), source: "measured 2026-11, version 1.0.102" },
  {
    name: "codex-mcp-client",
    title: "Codex CLI",
    limits: both(hard(300)),
    source: "measured 2026-11, version 0.166.0",
  },
  {
    name: "gemini-cli-mcp-client",
    title: "Gemini CLI",
    limits: both(hard(600)),
    source: "measured 2026-11, version 0.61.0",
  },
  { name: "opencode", title: "opencode", limits: both(idle(60)), source: "measured 2026-11, version 1.18.34" },
  {
    name: "kilo",
    title: "Kilo CLI",
    limits: both(hard(60)),
    source: "measured 2026-11, version 7.7.9; unknown whether progress extends it, taken as hard",
  },
  { name: "@cline/core", title: "Cline CLI", limits: both(hard(60)), source: "measured 2026-11, version 3.0.65" },
  {
    name: "continue-cli-client",
    title: "Continue CLI",
    limits: both(hard(60)),
    source: "measured 2026-11, version 1.5.47",
  },
  {
    name: "factory-cli",
    title: "Factory droid",
    limits: both(assumed),
    source: "assumed: its limit is unknown; its name was measured 2026-11, version 0.225.2",
  },
  {
    name: "qwen-cli-mcp-client-probe",
    title: "Qwen Code",
    limits: both(assumed),
    source: "assumed: its limit is unknown; its name was measured 2026-11, version 0.24.4",
  },
  {
    name: "claude-ai",
    title: "Claude Desktop",
    limits: both(hard(60)),
    source: "public threads: 60 s, in later versions 240 s; the shorter is taken",
  },
  { name: "Visual Studio Code", title: "VS Code Copilot Chat", limits: both(waits), source: "public threads" },
  {
    name: "cursor-vscode",
    title: "Cursor",
    limits: both(assumed),
    source: "assumed: its limit is unknown; its name is from public threads",
  },
  { name: "jcode", title: "jcode", limits: both(hard(30)), source: "public threads; the name is in its source" },
  {
    name: "Jan Streamable Client",
    title: "Jan",
    limits: both(hard(30)),
    source: "public threads; the name is in its source. Over stdio Jan has the default name of the Rust SDK",
  },
  {
    name: "Zed",
    title: "Zed",
    limits: both(hard(60)),
    source: "public threads: 60 s unless its user sets more; the name is in its source",
  },
  {
    name: "reasonix",
    title: "DeepSeek Reasonix",
    limits: both(hard(60)),
    source: "public threads; the name is in its source",
  },
];

const byName = new Map(knownHosts.map((host) => [host.name, host]));

/** The profile of the host that calls itself so, with what the user's config says about it; never nothing. */
export function findHost(name: string | undefined, overrides: Readonly<Record<string, HostOverride>>): HostProfile {
  const trimmed = name?.trim() ?? "";
  const known = byName.get(trimmed);
  const override = Object.hasOwn(overrides, trimmed) ? overrides[trimmed] : undefined;
  const assumedHost = isNamed(name) ? unknownHost : sdkClient;
  if (override === undefined) return known ?? assumedHost;
  const base = known ?? { ...assumedHost, name: trimmed, title: trimmed };
  const limits = { stdio: changed(base.limits.stdio, override), http: changed(base.limits.http, override) };
  return { ...base, limits, source: "the user's config" };
}

function changed(limit: HostLimit, { limitSeconds, isExtended }: HostOverride): HostLimit {
  const { limitMs } = limitSeconds === undefined ? limit : hard(limitSeconds);
  const figures = { limitMs, isExtended: isExtended ?? limit.isExtended };
  return limit.isAssumed && limitSeconds === undefined ? { ...figures, isAssumed: true } : figures;
}
