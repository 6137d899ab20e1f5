import type { Severity } from "../../check.ts";
import { redact, secretPatterns } from "../../text.ts";

/** What an error should not have said. */
export interface Leak {
  readonly kind: string;
  readonly severity: Severity;
  /** The place in the text, with a little before and after it. */
  readonly shown: string;
}

const trace = "a stack trace";
const ofDisk = "a path of the server's disk";

// Every pattern is bounded, so that no answer makes it slow. Line breaks of JSON are the two characters \n.
const patterns: readonly { readonly kind: string; readonly severity: Severity; readonly pattern: RegExp }[] = [
  {
    kind: trace,
    severity: "minor",
    pattern: /(?:^|\n|\\n|&nbsp;|>)\s{0,20}at\s[^\n\\]{1,300}(?::\d{1,7}:\d{1,7}\)?|\.java:\d{1,7}\)|:line\s\d{1,7})/,
  },
  {
    kind: trace,
    severity: "minor",
    pattern:
      /Traceback \(most recent call last\)|File \\?"[^"\n]{1,300}\\?", line \d{1,7}|goroutine \d{1,7} \[|panicked at [^\s]{1,200}:\d{1,7}/,
  },
  {
    kind: ofDisk,
    severity: "minor",
    pattern:
      /(?<![\w:/])\/(?:home|Users|root|usr|var|opt|srv|app|tmp|private)\/[\w.@+-]{1,100}\/[\w.@+/-]{1,300}|\b[A-Z]:\\{1,2}(?:Users|Windows|Program Files)\\{1,2}[\w. -]{1,100}|\/node_modules\/|\/site-packages\//,
  },
  {
    kind: "the text of a query or an error of the database",
    severity: "minor",
    pattern:
      /\bSQLSTATE\b|\bSQLITE_[A-Z]{2,20}\b|\bORA-\d{5}\b|syntax error at or near|You have an error in your SQL syntax|\bSELECT\s[^\n]{1,300}\sFROM\s\w|\bINSERT INTO\s\w|\bE11000 duplicate key/,
  },
  {
    kind: "environment variables",
    severity: "major",
    pattern:
      /\b(?:PATH=\/|HOME=\/|AWS_SECRET_ACCESS_KEY["']?\s?[=:]|DATABASE_URL["']?\s?[=:]|(?:OPENAI|ANTHROPIC|GITHUB)_(?:API_KEY|TOKEN)["']?\s?[=:])/,
  },
];

/**
 * Looks for what belongs into a log. A server that runs on its user's own machine, as this user, tells nobody anything
 * by a path of it.
 */
export function findLeaks(text: string, { isLocal = false }: { readonly isLocal?: boolean } = {}): Leak[] {
  // Blanked before it is cut: half a secret would not be known as one.
  const clean = redact(text);
  const found: Leak[] = [];
  for (const { kind, severity, pattern } of patterns) {
    const at = clean.search(pattern);
    // Paths are part of most traces.
    const isTold = found.some((leak) => leak.kind === kind || (kind === ofDisk && leak.kind === trace));
    if (at !== -1 && !isTold && !(isLocal && kind === ofDisk))
      found.push({ kind, severity, shown: clean.slice(Math.max(0, at - 80), at + 200) });
  }
  const secret = secretPatterns.find(({ pattern }) => pattern.test(text.slice(0, 10_000)));
  if (secret !== undefined) found.push({ kind: secret.name, severity: "major", shown: clean });
  return found;
}

/** Looks for a stack trace alone: what a tool is asked for may well be a path or a query. */
export function findTrace(text: string): Leak | undefined {
  return findLeaks(text).find(({ kind }) => kind === trace);
}
