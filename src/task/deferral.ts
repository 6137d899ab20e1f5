/**
 * Whether a call is answered while its client waits, and for how long. In this order:
 *
 * 1. the client asked for a task, which the command allows, or takes job notifications and the command is long → at
 * once; 2. the client can take a task and the command is long (declared, listed, or by its history) → a task at once,
 *    unless it asks first and the client can be sent back with that;
 *    a command that does not end by itself → at once, whatever the client can take;
 * 3. otherwise the call runs while the client waits, and is deferred late, without starting again: as a task after a
 * short
 *    patience where the client can take one, else as a plain handle just before its host would cut the call.
 */

import { budgetOf, toSeconds } from "../host/budget.ts";
import type { HostLimit } from "../host/profiles.ts";
import { thisProgram } from "../program/program.ts";

/** What the settings say. */
export interface DeferralRules {
  /** Off: only what the client asked for is deferred. */
  readonly isAuto: boolean;
  /** In place of the commands that are declared long. */
  readonly tools: readonly string[] | undefined;
  /** Clients that declare no tasks get no deferral at all. */
  readonly requiresClientTasks: boolean;
  /** A 2025-11-25 client may be given a task it did not ask for. */
  readonly isUnsolicited: boolean;
  /** A client that takes tasks waits this long for an answer. */
  readonly patienceMs: number;
  /** A command whose history's p95 is above this is long. */
  readonly longFromMs: number;
  /** No call stays open longer, whatever its host would bear. */
  readonly keepInlineMs: number;
  /** Limits of hosts are learned from calls that they give up. */
  readonly learns: boolean;
}

export const defaultDeferral: DeferralRules = {
  isAuto: true,
  tools: undefined,
  requiresClientTasks: false,
  isUnsolicited: false,
  patienceMs: 10_000,
  longFromMs: 10_000,
  keepInlineMs: 600_000,
  learns: true,
};

/** What a client could take in place of an answer. */
export interface ClientTakes {
  /** 2026-07-28: the request declares the tasks extension. */
  readonly canTakeTask: boolean;
  /** 2025-11-25: the client asked for nothing but could poll. */
  readonly canTakeUnasked: boolean;
  /** The client names tasks among its capabilities. */
  readonly declaresTasks: boolean;
  /** The client declared `experimental["meanwhile/jobs"]`. */
  readonly takesJobs: boolean;
  /** The plain follow-up tools are listed. */
  readonly canFollowUp: boolean;
}

/** What is known of one call when it comes in. */
export interface DeferralFacts extends ClientTakes {
  readonly toolName: string;
  /** Other names it answers to: a list of tools may hold any of them. */
  readonly aliases?: readonly string[];
  readonly declaredLong: boolean;
  readonly taskSupport: "optional" | "required" | "forbidden";
  /** Its client can be sent back with what it asks, and has not been yet. */
  readonly asksAhead?: boolean;
  /** Only with enough runs to tell. */
  readonly historyP95Ms: number | undefined;
  readonly estimateMs: number | undefined;
  /** It does not end by itself, says its author. */
  readonly isEndless: boolean;
  /** 2025-11-25: the request holds `params.task`; 2026-07-28: it hints at one with `_meta["meanwhile/task"]`. */
  readonly isAsked: boolean;
  readonly limit: HostLimit & { readonly host: string };
  readonly hasProgressToken: boolean;
}

/** `reason` is for people: why the call was deferred, or why it would be. */
export type Decision =
  | { readonly kind: "now"; readonly as: "task" | "job" | "handle"; readonly reason: string }
  | {
      readonly kind: "inline";
      /** What the client gets when the answer is not there in time; undefined: it waits for the answer. */
      readonly deferAs: "task" | "handle" | undefined;
      readonly deferAfterMs: number | undefined;
      readonly heartbeatMs: number | undefined;
      readonly reason: string;
    };

/** Decides about one call; the same facts and rules always give the same decision. */
export function decide(facts: DeferralFacts, rules: DeferralRules = defaultDeferral): Decision {
  const { toolName, canTakeTask, taskSupport, estimateMs } = facts;
  const canTakeNow = canTakeTask && facts.asksAhead !== true;
  const long = facts.isEndless ? endless(toolName) : isLong(facts, rules);
  const budget = budgetOf(facts.limit, facts.hasProgressToken, rules.keepInlineMs);
  const { heartbeatMs } = budget;
  const stay = (reason: string): Decision => ({
    kind: "inline",
    deferAs: undefined,
    deferAfterMs: undefined,
    heartbeatMs,
    reason,
  });

  if (taskSupport === "forbidden") return stay(`${toolName} is never run as a task`);
  if (facts.isAsked) return { kind: "now", as: "task", reason: "the client asked for a task" };
  if (facts.takesJobs && long)
    return { kind: "now", as: "job", reason: `${long.claim} and the client takes job notifications` };
  if (canTakeNow && taskSupport === "required")
    return { kind: "now", as: "task", reason: `${toolName} always runs as a task` };
  if (!rules.isAuto) return stay("only tasks that the client asks for are made");

  if (canTakeNow && long) return { kind: "now", as: "task", reason: `${long.claim} and the client takes tasks` };
  const mayGiveUnasked =
    rules.isUnsolicited && facts.canTakeUnasked && (facts.declaresTasks || !rules.requiresClientTasks);
  if (mayGiveUnasked && long) return { kind: "now", as: "task", reason: `${long.claim} and tasks are given unasked` };

  if (canTakeTask) {
    const isPatienceShorter = rules.patienceMs <= budget.handleAfterMs;
    const deferAfterMs = isPatienceShorter ? rules.patienceMs : budget.handleAfterMs;
    const reason = isPatienceShorter ? `no answer after ${toSeconds(deferAfterMs)}` : budget.why;
    return { kind: "inline", deferAs: "task", deferAfterMs, heartbeatMs, reason };
  }
  if (rules.requiresClientTasks && !facts.declaresTasks)
    return stay("the client declares no tasks, and nothing else is to be given");
  if (mayGiveUnasked && facts.declaresTasks)
    return { kind: "inline", deferAs: "task", deferAfterMs: budget.handleAfterMs, heartbeatMs, reason: budget.why };
  if (!facts.canFollowUp) return stay("the client takes no tasks, and the follow-up tools are off");
  if (facts.isEndless) return { kind: "now", as: "handle", reason: endless(toolName).claim };
  if (long && estimateMs !== undefined && estimateMs > budget.handleAfterMs)
    return {
      kind: "now",
      as: "handle",
      reason: `${long.claim} and needs about ${toSeconds(estimateMs)}; ${budget.why}`,
    };
  return { kind: "inline", deferAs: "handle", deferAfterMs: budget.handleAfterMs, heartbeatMs, reason: budget.why };
}

function endless(toolName: string): { readonly why: string; readonly claim: string } {
  return { why: "does not end by itself", claim: `${toolName} does not end by itself` };
}

/** Why a command counts as long, in short and as a claim about it; undefined when it does not. */
export function isLong(
  facts: Pick<DeferralFacts, "toolName" | "aliases" | "declaredLong" | "historyP95Ms">,
  rules: Pick<DeferralRules, "tools" | "longFromMs"> = defaultDeferral,
): { readonly why: string; readonly claim: string } | undefined {
  const { toolName, aliases = [], declaredLong, historyP95Ms } = facts;
  if (rules.tools === undefined && declaredLong) return { why: "declared long", claim: `${toolName} is declared long` };
  if (rules.tools?.some((name) => name === toolName || aliases.includes(name))) {
    const why = `listed in ${thisProgram.variable("AUTO_TASK_TOOLS")}`;
    return { why, claim: `${toolName} is ${why}` };
  }
  if (historyP95Ms === undefined || !(historyP95Ms > rules.longFromMs)) return undefined;
  const why = `history: p95 ${toSeconds(historyP95Ms)}`;
  return { why, claim: `${toolName} is long (${why})` };
}
