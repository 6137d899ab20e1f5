import {
  askCompletions,
  type Completable,
  complete,
  nothingToComplete,
  sentFor,
} from "../../asking/completion/completable.ts";
import type { Probe } from "../../asking/probe.ts";
import { type Check, failed, passed, skipped, type Verdict } from "../../check.ts";
import type { ProbeAnswer, ProbeSession } from "../../wire/probe-session.ts";

const patienceMs = 2_000;

/**
 * What people type by accident, and others on purpose: half a pattern, patterns that explode, formats, paths, and very
 * much.
 */
const partials: readonly { readonly what: string; readonly value: string }[] = [
  { what: "an open parenthesis", value: "(" },
  { what: "a pattern that explodes", value: "^(a+)+$" },
  { what: "a value that makes patterns explode", value: `${"a".repeat(40)}!` },
  { what: "a format", value: "%s%n" },
  { what: "a path upwards", value: "../" },
  { what: "10,000 characters", value: "a".repeat(10_000) },
];

export const check: Check = {
  id: "completion/hostile-partials",
  question: "Does a strange partial value leave the server alive and quick?",
  severity: "major",
  why: "Completion runs at every keystroke: a value that stops the server stops every call of every user until it is started again.",
  remedy:
    "Compare with `startsWith` rather than with a pattern made of the value; bound the value's length; test patterns of your own in a worker with a time limit.",
  source: "MCP 2025-11-25 and 2026-07-28, Completion, Security: implementations MUST validate all completion inputs",
  limitMs: 20_000,
  run: (probe) =>
    askCompletions(probe, async (session, [first]) => {
      if (first === undefined) return skipped(nothingToComplete);
      const usual = await complete(session, first, "a");
      if (usual.message === undefined) return skipped("An ordinary value was not answered either.");
      const limitMs = Math.max(patienceMs, usual.elapsedMs * 10);
      for (const partial of partials) {
        const verdict = await tryOne({ probe, session, completable: first, usual, limitMs }, partial);
        if (verdict !== undefined) return verdict;
      }
      return passed();
    }),
};

interface Try {
  readonly probe: Probe;
  readonly session: ProbeSession;
  readonly completable: Completable;
  readonly usual: ProbeAnswer;
  readonly limitMs: number;
}

async function tryOne(
  { probe, session, completable, usual, limitMs }: Try,
  { what, value }: (typeof partials)[number],
): Promise<Verdict | undefined> {
  // Another request at the same time: a server that computes does not answer it either.
  const [answer, other] = await Promise.all([
    complete(session, completable, value, limitMs),
    session.request(session.isModern ? "server/discover" : "ping", {}, { timeoutMs: limitMs }),
  ]);
  const sent = sentFor(probe, completable, value);
  const isGone = (one: ProbeAnswer) => one.message === undefined && (one.http?.status ?? 0) === 0;
  if (isGone(answer) || isGone(other)) {
    const evidence = [
      sent,
      probe.received(answer.message ?? answer.problem),
      probe.measured(`another request meanwhile: ${other.problem ?? "answered"}`),
    ];
    return failed({
      title: `Completing ${what} is not answered in 2 s${isGone(other) ? ", and nothing else is answered meanwhile" : ""}`,
      evidence,
    });
  }
  if (answer.error?.code !== -32603 || usual.error !== undefined) return undefined;
  return failed({
    severity: "minor",
    title: `Completing ${what} ends in an internal error`,
    evidence: [sent, probe.received(answer.error)],
  });
}
