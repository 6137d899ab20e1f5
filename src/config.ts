import type { McpServer } from "@modelcontextprotocol/server";
import type { AccessRule } from "./auth/access.ts";
import type { IssuerSettings } from "./auth/issuers.ts";
import type { HostOverride } from "./host/profiles.ts";
import type { LogLevel } from "./log.ts";
import type { Bundled } from "./project/project.ts";
import type { UpstreamConfig, UpstreamPrefix } from "./project/upstream-config.ts";

export type { AccessRule } from "./auth/access.ts";
export type { IssuerSettings, ScopeGrant } from "./auth/issuers.ts";
export type { UpstreamConfig, UpstreamOAuth, UpstreamPrefix } from "./project/upstream-config.ts";

/** Called for every MCP server that is made, to add resources, prompts and tools of one's own. */
export type ServerHook = (server: McpServer, facts: { readonly era: "legacy" | "modern" }) => void | Promise<void>;

/** What a project's `meanwhile.config.ts` may say. */
export interface UserConfig {
  /** How the server introduces itself. Default: meanwhile. */
  readonly name?: string;
  /** The version that the server reports to clients. Default: that of the project's `package.json`, else Meanwhile's. */
  readonly version?: string;
  /**
   * What the project is called in a store that several servers share: a worker runs the tasks of projects of this name.
   * Default: made of where its folders lie, which has to be the same everywhere then.
   */
  readonly project?: string;
  /** Told to clients when they connect: what the tools are for, what to use first. */
  readonly instructions?: string;
  /** Command folders, relative to the config file. Default: commands. */
  readonly commands?: readonly string[];
  /**
   * Environment variables that commands depend on, beside those that their code is seen to read: other values, another
   * daemon.
   */
  readonly env?: readonly string[];
  /**
   * The commands that come with Meanwhile: `true` serves them beside the project's own, a list only these domains of
   * them, `false` none. Default: all, where the project has no command of its own.
   */
  readonly bundled?: Bundled;
  /** Put in front of every tool name: `wksm` makes wksm_report_build. */
  readonly toolPrefix?: string;
  readonly http?: HttpConfig;
  /** Who may call the server over HTTP, beside the user of the home, and what. */
  readonly auth?: AuthConfig;
  /** `false`: commands are tools only, and no prompts. */
  readonly prompts?: boolean;
  readonly logLevel?: LogLevel;
  /** How many earlier files of the home's logs are kept, 10 MiB each. Default: 3. */
  readonly logFiles?: number;
  /** When a call that takes long becomes a task. */
  readonly deferral?: DeferralConfig;
  /** How long MCP hosts wait, by the name they give as `clientInfo.name`. */
  readonly hosts?: Readonly<Record<string, HostOverride>>;
  /** List task_result, task_status and the like, for clients without tasks. Default: true. */
  readonly followUpTools?: boolean;
  /** Report tool errors of 2025-11-25 tasks as completed, for clients that never fetch a failed task's result. */
  readonly errorsAsCompleted?: boolean;
  /** How long a process that was told to stop lets work go on that must not be run twice. Default: 25. */
  readonly graceSeconds?: number;
  /** How long a question of a task waits for its answer; then the task ends. Default: 86400, a day. */
  readonly questionSeconds?: number;
  /** How much of what one caller, or the server, may have at once. */
  readonly limits?: LimitsConfig;
  /**
   * `allowPrivate`: the tool diagnose_server may speak to this machine and to private networks. Default: false, because
   * a model says where to go.
   */
  readonly diagnose?: DiagnoseConfig;
  /** What the bundled commands may do for MCP clients, and what one document may take of those that read it. */
  readonly pack?: PackConfig;
  /** Hands over the SDK's McpServer. */
  readonly mcp?: ServerHook;
  /** Servers that stand behind this one, by name: their tools are served as commands are. */
  readonly upstreams?: Readonly<Record<string, UpstreamConfig>>;
  /**
   * When an upstream's name is put in front of its tools: `always`, `never`, or only where two have one name. Default:
   * `always` where there are several, and `never` for one alone.
   */
  readonly upstreamPrefix?: UpstreamPrefix;
}

export interface HttpConfig {
  /** Default: 7337. */
  readonly port?: number;
  /** A loopback address. Default: 127.0.0.1. */
  readonly host?: string;
  /** Lets callers in without a token, as `anonymous`; they have nothing of the bundled commands. Default: false. */
  readonly allowAnonymous?: boolean;
  /** The URL of the MCP endpoint as clients know it, e.g. https://example.com/mcp. Default: where it listens. */
  readonly publicUrl?: string;
  /** Origins whose web pages may call the server, e.g. https://app.example.com. Default: those of this machine. */
  readonly allowedOrigins?: readonly string[];
}

export interface AuthConfig {
  /** Authorization servers whose access tokens are accepted over HTTP. Default: none. */
  readonly issuers?: readonly IssuerSettings[];
  /** What single tools need. Of several rules that match a tool, the one with the most specific pattern counts. */
  readonly access?: readonly AccessRule[];
  /**
   * `false`: a user is listed only the tools that they may call. Default: also those that their issuer could grant the
   * missing scopes for.
   */
  readonly listUngranted?: boolean;
}

export interface PackConfig {
  /**
   * Files and folders that they may read through MCP, beside the session's working folder: whole paths, or such that
   * begin with ~/.
   */
  readonly roots?: readonly string[];
  /** Megabytes of memory for reading a document. Default: 192. */
  readonly memoryMb?: number;
  /** Seconds for reading a document. Default: 60. */
  readonly documentSeconds?: number;
  /** Files inside a document, its pages, columns, links, headings or tags: so many of each. Default: 10,000. */
  readonly documentParts?: number;
  /** Megabytes that are unpacked from a document, all parts together. Default: 32. */
  readonly unpackedMb?: number;
  /** Megabytes of text that may come of a document. Default: 32. */
  readonly textMb?: number;
}

export interface LimitsConfig {
  /** Live tasks of the local user, and of each API key. Default: 10,000. */
  readonly localTasks?: number;
  /** Live tasks of each signed-in user. Default: 1,000. */
  readonly signedInTasks?: number;
  /** Live tasks of all anonymous callers together. Default: 100. */
  readonly anonymousTasks?: number;
  /** Tasks of one caller that wait for an answer. Default: 1,000. */
  readonly openQuestions?: number;
  /** Megabytes of results that are on their way to clients, at most an eighth of the heap. Default: 64. */
  readonly resultMb?: number;
}

interface DiagnoseConfig {
  readonly allowPrivate?: boolean;
}

export interface DeferralConfig {
  /** `false`: only tasks that the client asks for. */
  readonly auto?: boolean;
  /** The tools that count as long, in place of those declared so. */
  readonly tools?: readonly string[];
  /** Clients that declare no tasks get no deferral at all. */
  readonly requireClientTasks?: boolean;
  /** Give a 2025-11-25 client a task it did not ask for; the specification forbids it. */
  readonly unsolicited?: boolean;
  /** How long a client that takes tasks waits for an answer. Default: 10. */
  readonly patienceSeconds?: number;
  /** A command whose runs' p95 is above this counts as long. Default: 10. */
  readonly longSeconds?: number;
  /** No call stays open longer, whatever its host would bear. Default: 600. */
  readonly keepInlineSeconds?: number;
  /** `false`: nothing is learned about hosts from calls that they give up. Default: true. */
  readonly learn?: boolean;
}

/** Gives a config file its types. */
export function defineConfig(config: UserConfig): UserConfig {
  return config;
}
