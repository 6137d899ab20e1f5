import { type AccessSettings, ToolAccess } from "../auth/access.ts";
import type { Catalog } from "../command/catalog.ts";
import { closest } from "../command/suggest.ts";
import type { Logger } from "../log.ts";

interface UnmatchedRulesOptions {
  readonly auth: AccessSettings;
  readonly catalog: Catalog;
  readonly log: Logger;
  /** False while an upstream has not said what tools it has. */
  readonly areToolsKnown: () => boolean;
}

/** Warns once, when all tools are known, of rules of `auth.access` that match no tool. Returns a function that stops it. */
export function warnOfUnmatchedRules({ auth, catalog, log, areToolsKnown }: UnmatchedRulesOptions): () => void {
  if (auth.access.length === 0) return () => {};
  const access = new ToolAccess(auth);
  let isOver = false;
  const check = () => {
    if (isOver || catalog.pending.length > 0 || !areToolsKnown()) return;
    isOver = true;
    const names = [...catalog.entries, ...catalog.problems].flatMap(({ toolName }) => toolName ?? []);
    for (const pattern of access.patternsWithout(names)) {
      const guess = closest(pattern, names);
      const cure = guess === undefined ? "correct the pattern, or remove the rule" : `did you mean ${guess}?`;
      log.warn(`auth.access: the pattern ${pattern} matches no tool; ${cure}`);
    }
  };
  const stopListening = catalog.onChange(check);
  void catalog.whenLoaded.then(check);
  return () => {
    isOver = true;
    stopListening();
  };
}
