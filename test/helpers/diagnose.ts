import path from "node:path";
import type { Facts } from "../../src/diagnose/asking/facts.ts";
import type { SessionPool } from "../../src/diagnose/asking/session-pool.ts";
import type { Check, Verdict } from "../../src/diagnose/check.ts";
import type { DiagnosisTarget, ToolToCall } from "../../src/diagnose/diagnosis-target.ts";
import { CheckAnswerer, type CheckRequest } from "../../src/diagnose/process/answer-checks.ts";
import { runCheck, runSurvey } from "../../src/diagnose/process/run-check.ts";
import { runHostile } from "../fixtures/diagnose/hostile.mjs";
import { runFixture } from "../fixtures/diagnose/server.mjs";
import { processesAreForbidden } from "./meanwhile.ts";
import { programAt } from "./programs.ts";

const folder = path.resolve(import.meta.dirname, "../fixtures/diagnose");
if (processesAreForbidden()) {
  programAt(path.join(folder, "server.mjs"), (host) => runFixture(host.argv, host));
  programAt(path.join(folder, "hostile.mjs"), (host) => runHostile(host.argv, host));
  programAt(path.resolve(import.meta.dirname, "../../src/diagnose/process/check-child.ts"), (host) => {
    const answerer = new CheckAnswerer(host.send);
    host.onMessage((message) => void answerer.answer(message as CheckRequest));
  });
}

const nobody = { onStart() {}, onEnd() {} };

interface AskOptions {
  readonly tools?: readonly ToolToCall[];
  readonly isFull?: boolean;
  readonly requestMs?: number;
  /** Where a file may be laid that no server should hand out. */
  readonly privateFolder?: string;
}

/** A server that is started by a command line: a fixture by its name, or any words. */
export function piped(...words: string[]): DiagnosisTarget {
  const [first = "", ...rest] = words;
  const isFixture = first.endsWith(".mjs") && !path.isAbsolute(first);
  return { kind: "stdio", argv: isFixture ? [process.execPath, path.join(folder, first), ...rest] : words };
}

/** A server on this machine. */
export function reached(
  url: string,
  headers: Record<string, string> = {},
  otherHeaders?: Record<string, string>,
  foreignHeaders?: Record<string, string>,
): DiagnosisTarget {
  const policy = { allowsPrivate: false, allowsLoopback: true };
  return { kind: "http", url, headers, otherHeaders, foreignHeaders, policy };
}

/** Learns about a server, in this process. */
export function surveyed(
  target: DiagnosisTarget,
  { tools = [], isFull = true, requestMs = 5_000 }: AskOptions = {},
): Promise<Facts> {
  return runSurvey({ target, tools, isFull, requestMs }, nobody);
}

/** Asks one question of a server, in this process and without the bounds of a child. */
export async function ask(
  check: Check,
  target: DiagnosisTarget,
  {
    tools = [],
    isFull = true,
    requestMs = 5_000,
    facts,
    memory,
    pool,
    privateFolder,
  }: AskOptions & {
    readonly facts?: Facts;
    readonly memory?: Map<string, Promise<unknown>>;
    readonly pool?: SessionPool;
  } = {},
): Promise<Verdict> {
  const known = facts ?? (await surveyed(target, { tools, isFull, requestMs }));
  return await runCheck(
    check,
    { target, tools, isFull, requestMs, facts: known, privateFolder, limitMs: check.limitMs ?? 10_000 },
    { events: nobody, ...(memory !== undefined && { memory }), ...(pool !== undefined && { pool }) },
  );
}
