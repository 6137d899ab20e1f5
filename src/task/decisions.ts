import type { CatalogEntry } from "../command/catalog.ts";
import type { CallRequest } from "./call-request.ts";
import { type Decision, type DeferralRules, decide } from "./deferral.ts";
import type { Outlook } from "./outlook.ts";

/** It is answered while its client waits, as long as that lasts. */
export type Inline = Decision & {
  readonly kind: "inline";
  /** A sentence for the caller: that an equal call was interrupted. */
  readonly note?: string;
};

interface Decided extends Pick<CallRequest, "client" | "limit"> {
  readonly outlook: Outlook;
  readonly hasProgressToken: boolean;
  readonly asksAhead: boolean;
  readonly decision: Decision;
}

/** What is decided about calls, command by command. */
export class Decisions {
  readonly #rules: DeferralRules | undefined;
  /** What was last decided about a command, and from what. */
  readonly #decided = new WeakMap<CatalogEntry, Decided>();

  constructor(rules: DeferralRules | undefined) {
    this.#rules = rules;
  }

  /** The same as long as nothing new is known of client and command, so it is kept. */
  decide(request: CallRequest, outlook: Outlook): Decision {
    const { entry, client, limit, asksAhead = false } = request;
    const hasProgressToken = request.progressToken !== undefined;
    const known = this.#decided.get(entry);
    if (
      known?.outlook === outlook &&
      known.client === client &&
      known.limit === limit &&
      known.asksAhead === asksAhead &&
      known.hasProgressToken === hasProgressToken
    )
      return known.decision;
    const { estimateMs, p95Ms, isEndless } = outlook;
    const decision = decide(
      {
        toolName: entry.toolName,
        ...(entry.aliases !== undefined && { aliases: entry.aliases.map(({ name }) => name) }),
        declaredLong: entry.command.long,
        taskSupport: entry.command.taskSupport,
        historyP95Ms: p95Ms,
        estimateMs,
        isEndless,
        ...client,
        asksAhead,
        isAsked: client.asked !== undefined,
        limit,
        hasProgressToken,
      },
      this.#rules,
    );
    this.#decided.set(entry, { outlook, client, limit, hasProgressToken, asksAhead, decision });
    return decision;
  }
}

export function nothingDeferred(reason: string): Inline {
  return { kind: "inline", deferAs: undefined, deferAfterMs: undefined, heartbeatMs: undefined, reason };
}
