import type { Catalog } from "../command/catalog.ts";
import type { GuardedTool, ToolAccess } from "./access.ts";
import { hasScope } from "./access.ts";
import type { Authentication } from "./authentication.ts";
import { InsufficientScope } from "./insufficient-scope.ts";
import { builtInScopes } from "./rights.ts";

/** The follow-up tools of clients without tasks, each by its name in MCP. */
export type FollowUpTool = "task_result" | "task_status" | "task_cancel" | "task_list" | "task_answer";

interface GateOptions {
  readonly access: ToolAccess;
  readonly catalog: Catalog;
  /** By the names that clients know. */
  readonly followUps: ReadonlyMap<string, FollowUpTool>;
}

type Params = Readonly<Record<string, unknown>>;

interface Asked {
  readonly method: string | undefined;
  readonly params: Params;
  readonly name: string | undefined;
}

/**
 * Methods and notifications that need no `meanwhile:call`. Any other may reach a server behind this one, which may do
 * anything then.
 */
const methodsThatRead: ReadonlySet<string> = new Set([
  ...["initialize", "ping", "logging/setLevel", "server/discover", "meanwhile/whoami", "subscriptions/listen"],
  ...["tools/list", "prompts/list", "prompts/get", "completion/complete"],
  ...["resources/list", "resources/templates/list", "resources/read", "resources/subscribe", "resources/unsubscribe"],
  ...["tasks/get", "tasks/result", "tasks/list"],
  ...["notifications/initialized", "notifications/cancelled", "notifications/progress"],
  ...["notifications/roots/list_changed", "GET /mcp", "DELETE /mcp"],
]);

/**
 * Decides which requests of MCP a caller may send. Every method needs `meanwhile:read`; calls, cancellations, answers and
 * methods of other servers need `meanwhile:call`; a call, and a completion of a tool's arguments, needs what the tool
 * needs as well.
 */
export class Gate {
  readonly #options: GateOptions;

  constructor(options: GateOptions) {
    this.#options = options;
  }

  /**
   * Throws an InsufficientScope, or rejects with one, for a caller with too few scopes. `method` is undefined for a
   * message that is an answer to a request of the server. A tool that is hidden from the caller passes: to this caller it
   * is unknown wherever it is looked up.
   */
  authorize(authentication: Authentication, method: string | undefined, params: Params): undefined | Promise<void> {
    if (authentication.caller.kind === "local") return undefined;
    const name = toolIn(method, params);
    // A command says what it needs when its file is loaded.
    const loading = name === undefined ? undefined : this.#options.catalog.load(name);
    if (loading !== undefined) return loading.then(() => this.#check(authentication, { method, params, name }));
    this.#check(authentication, { method, params, name });
    return undefined;
  }

  #check(authentication: Authentication, { method, params, name }: Asked): void {
    const tools = name === undefined ? [] : this.#toolsOf(name);
    const right = this.#isChange(method, params, tools) ? builtInScopes.call : builtInScopes.read;
    const standings = tools.map((tool) => this.#options.access.standingOf(authentication, tool));
    const ofTools = standings.flatMap((one) => (typeof one === "string" ? [] : one.scopes));
    if (ofTools.length === 0 && hasScope(authentication.caller, right)) return;
    const scopes = new Set<string>([right, ...ofTools]);
    throw new InsufficientScope(describe(method, name), withoutIncluded(scopes), authentication);
  }

  /**
   * The tools that a name may lead to: a command, and for its alias also a tool of that name that an author has
   * registered by hand. Empty for a follow-up tool.
   */
  #toolsOf(name: string): readonly GuardedTool[] {
    const { catalog, followUps } = this.#options;
    const entry = catalog.get(name) ?? catalog.problemOf(name);
    if (entry === undefined) return followUps.has(name) ? [] : [{ toolName: name }];
    const command = { ...entry, toolName: entry.toolName ?? name };
    return command.toolName === name ? [command] : [command, { toolName: name }];
  }

  #isChange(method: string | undefined, params: Params, tools: readonly GuardedTool[]): boolean {
    if (method !== "tools/call" || tools.length > 0) return method === undefined || !methodsThatRead.has(method);
    const name = this.#options.followUps.get(String(params.name));
    // A client answers what only it can answer beside the arguments (2026-07-28).
    if (params.inputResponses !== undefined) return true;
    const { cancel, answer } = (params.arguments ?? {}) as Params;
    if (name === "task_result") return (cancel !== undefined && cancel !== false) || answer !== undefined;
    return name !== "task_status" && name !== "task_list";
  }
}

/** The tool that is called, or whose arguments are completed. */
function toolIn(method: string | undefined, params: Params): string | undefined {
  const { ref } = params as { readonly ref?: { readonly name?: unknown } | null };
  const name =
    method === "tools/call"
      ? params.name
      : method === "completion/complete"
        ? ref === undefined
          ? params.name
          : ref?.name
        : undefined;
  return typeof name === "string" ? name : undefined;
}

function describe(method: string | undefined, name: string | undefined): string {
  if (method === "tools/call" && name !== undefined) return `Calling ${JSON.stringify(name.slice(0, 100))}`;
  return method === undefined ? "Answering the server" : method.slice(0, 100);
}

/** Without the scopes that another one of them includes. */
function withoutIncluded(scopes: ReadonlySet<string>): string[] {
  const { read, call, admin } = builtInScopes;
  const included: ReadonlySet<string> = new Set(scopes.has(admin) ? [call, read] : scopes.has(call) ? [read] : []);
  return [...scopes].filter((scope) => !included.has(scope));
}
