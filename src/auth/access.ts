import type { Caller } from "../command/caller.ts";
import type { Authentication } from "./authentication.ts";
import type { IssuerSettings } from "./issuers.ts";
import { builtInScopes, hasRight, type Right } from "./rights.ts";
import { bySpecificity, matchesTool } from "./tool-pattern.ts";

/** What a tool needs that matches a pattern. Of several rules that match, the most specific pattern counts. */
export interface AccessRule {
  /** A tool's name, or a pattern: `*` stands for any characters. */
  readonly tools: string;
  /** All of them are needed, beside the scopes of the command itself. */
  readonly scopes?: readonly string[];
  /** The caller must be in one of them. */
  readonly groups?: readonly string[];
}

export interface AccessSettings {
  readonly access: readonly AccessRule[];
  /** Tools that a user has too few scopes for are listed, where the issuer could grant them. */
  readonly listUngranted: boolean;
  /** An issuer with `grant` cannot put our scopes into its tokens, so its users cannot ask for more. */
  readonly issuers?: readonly Pick<IssuerSettings, "issuer" | "grant">[];
}

/** A tool, as far as access to it is concerned. */
export interface GuardedTool {
  readonly toolName: string;
  readonly isBundled?: boolean | undefined;
  /** Absent where the tool is no command, or its file is not loaded. */
  readonly command?: { readonly scopes?: readonly string[] | undefined };
}

/**
 * What a caller may do with a tool. `hidden`: to this caller it is unknown, because no scope would open it. Otherwise the
 * caller has too few of the `scopes` that the tool needs.
 */
export type Standing = "granted" | "hidden" | { readonly scopes: readonly string[] };

/** So many names are kept with their rules. */
const maxNames = 10_000;
/** A longer name is no tool's. */
const maxNameLength = 200;

/** Decides which tools a caller may list and call. */
export class ToolAccess {
  readonly #rules: readonly AccessRule[];
  /** The rules for names that were looked up. */
  readonly #rulesByName = new Map<string, readonly AccessRule[]>();
  readonly #listsUngranted: boolean;
  /** How the IDs begin of users who cannot ask their issuer for more scopes. */
  readonly #fixed: readonly string[];

  constructor({ access, listUngranted, issuers = [] }: AccessSettings) {
    this.#rules = access.toSorted((a, b) => bySpecificity(a.tools, b.tools));
    this.#listsUngranted = listUngranted;
    this.#fixed = issuers.filter(({ grant = [] }) => grant.length > 0).map(({ issuer }) => `${issuer}#`);
  }

  standingOf({ caller, commands = [] }: Authentication, tool: GuardedTool): Standing {
    if (caller.kind === "local") return "granted";
    if (commands.length > 0 && !commands.some((pattern) => matchesTool(pattern, tool.toolName))) return "hidden";
    const rules = this.#rulesFor(tool.toolName);
    if (tool.isBundled === true && caller.kind === "anonymous") return "hidden";
    if (!rules.every(({ groups }) => groups === undefined || groups.some((group) => caller.groups.includes(group))))
      return "hidden";
    if (rules.length === 0 && tool.isBundled !== true && (tool.command?.scopes ?? []).length === 0) return "granted";
    // A pattern for every tool is meant to limit callers, so it does not open the files of this machine to them.
    const isOpened = rules.some(({ tools }) => !tools.startsWith("*"));
    const isForAdmins = tool.isBundled === true && !isOpened && caller.kind !== "app";
    const scopes = new Set([
      ...(tool.command?.scopes ?? []),
      ...rules.flatMap((rule) => rule.scopes ?? []),
      ...(isForAdmins ? [builtInScopes.admin] : []),
    ]);
    return [...scopes].every((scope) => hasScope(caller, scope)) ? "granted" : { scopes: [...scopes] };
  }

  isKnown(authentication: Authentication, tool: GuardedTool): boolean {
    return this.standingOf(authentication, tool) !== "hidden";
  }

  /** Tools of administrators are listed to them alone: a user does not become one by asking for a scope. */
  isListed(authentication: Authentication, tool: GuardedTool): boolean {
    const standing = this.standingOf(authentication, tool);
    if (typeof standing === "string") return standing === "granted";
    const { caller } = authentication;
    const couldBeGranted = this.#listsUngranted && caller.kind === "user" && this.#issuerOf(caller) === "";
    return couldBeGranted && (hasRight(caller, "admin") || !standing.scopes.includes(builtInScopes.admin));
  }

  /**
   * The same rights without what no access depends on: callers whose reduced rights are equal have the same access.
   * Undefined for the local user, who may do everything.
   */
  reduce({ caller, commands = [] }: Authentication): Authentication | undefined {
    const { kind, scopes, groups } = caller;
    if (kind === "local") return undefined;
    const counts = (group: string) => this.#rules.some((rule) => rule.groups?.includes(group) === true);
    const reduced = {
      ...{ kind, id: this.#issuerOf(caller) },
      scopes: [...new Set(scopes)].sort(),
      groups: [...new Set(groups.filter(counts))].sort(),
    };
    return { caller: reduced, ...(commands.length > 0 && { commands }) };
  }

  /**
   * True where this caller may call listed tools alone, because a rule or the credential limits them by their names. A
   * server behind this one may take another name for such a tool, for example one in capital letters.
   */
  needsListedNames({ commands = [] }: Authentication): boolean {
    return commands.length > 0 || this.#rules.length > 0;
  }

  /** The patterns that match none of these tools. */
  patternsWithout(toolNames: readonly string[]): string[] {
    const patterns = this.#rules.map(({ tools }) => tools);
    return patterns.filter((pattern) => !toolNames.some((toolName) => matchesTool(pattern, toolName)));
  }

  /** The beginning of the ID of a user who cannot ask for more scopes; empty for any other caller. */
  #issuerOf({ kind, id }: Caller): string {
    return kind === "user" ? (this.#fixed.find((start) => id.startsWith(start)) ?? "") : "";
  }

  /** The most specific rule; several where none is more specific than the other, and then all of them count. */
  #rulesFor(toolName: string): readonly AccessRule[] {
    const known = this.#rulesByName.get(toolName);
    if (known !== undefined) return known;
    const rules = this.#findRules(toolName);
    // Names come from clients as well, who may send any number of them.
    if (toolName.length > maxNameLength) return rules;
    if (this.#rulesByName.size >= maxNames) this.#rulesByName.clear();
    this.#rulesByName.set(toolName, rules);
    return rules;
  }

  #findRules(toolName: string): readonly AccessRule[] {
    const best = this.#rules.find(({ tools }) => matchesTool(tools, toolName));
    if (best === undefined) return [];
    return this.#rules.filter(({ tools }) => bySpecificity(tools, best.tools) === 0 && matchesTool(tools, toolName));
  }
}

const rights = new Map(Object.entries(builtInScopes).map(([right, scope]) => [scope as string, right as Right]));

/** True also where another scope of the caller includes this one. */
export function hasScope(caller: Caller, scope: string): boolean {
  const right = rights.get(scope);
  return right === undefined ? caller.kind === "local" || caller.scopes.includes(scope) : hasRight(caller, right);
}
