import { SessionPool } from "../../src/diagnose/asking/session-pool.ts";
import type { Check, Verdict } from "../../src/diagnose/check.ts";
import type { DiagnosisTarget } from "../../src/diagnose/diagnosis-target.ts";
import { allBreaks } from "../fixtures/diagnose/server.mjs";
import { ask } from "./diagnose.ts";

export type Verdicts = Readonly<Record<string, Verdict>>;

/** Asks every check of a suite, one after the other; as in a diagnosis, gentle ones share a server that was started. */
export async function askAll(
  suite: readonly Check[],
  target: DiagnosisTarget,
  options: NonNullable<Parameters<typeof ask>[2]>,
): Promise<Verdicts> {
  const verdicts: Record<string, Verdict> = {};
  const memory = new Map<string, Promise<unknown>>();
  const pool = new SessionPool();
  try {
    for (const check of suite) verdicts[check.id] = await ask(check, target, { memory, pool, ...options });
  } finally {
    await pool.empty();
  }
  return verdicts;
}

/** What was found: the check, what it is about, the severity where it is not the check's own, and the title. */
export function findingsIn(verdicts: Verdicts): { id: string; subject?: string; severity?: string; title: string }[] {
  return Object.entries(verdicts).flatMap(([id, verdict]) =>
    verdict.outcome === "failed"
      ? verdict.findings.map(({ evidence: _evidence, remedy: _remedy, ...finding }) => ({ id, ...finding }))
      : [],
  );
}

export function outcomesIn(verdicts: Verdicts): Record<string, string> {
  return Object.fromEntries(Object.entries(verdicts).map(([id, { outcome }]) => [id, outcome]));
}

/** The names of the servers that are wrong in what this suite asks. */
export function breaksOf(suite: string): string[] {
  return Object.keys(allBreaks).filter((name) => name.startsWith(`${suite}/`));
}

/**
 * The checks that run against a broken server. A server that breaks a check in the first way runs them all, and none
 * but its own may fail. A server that breaks it in another way (`~`) runs that check alone; `npm run check:diagnose`
 * runs every check against every server.
 */
export function askedOf(name: string, suite: readonly Check[]): readonly Check[] {
  return !name.includes("~") ? suite : suite.filter(({ id }) => id === checkOf(name));
}

/** The check that a broken server must fail. */
export function checkOf(name: string): string {
  return name.replace(/~.*/, "");
}
