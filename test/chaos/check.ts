import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { maxCrashes, maxOwnCrashes } from "../../src/task/task.ts";
import type { RunLine } from "./commands.ts";
import type { Ground } from "./ground.ts";
import type { AnswerLine, CancelLine, SeenLine } from "./meddler.ts";
import type { Ack } from "./producer.ts";

/**
 * What must hold after any number of kills. Everything is counted from the store, from a table that its own triggers
 * fill, or from files that are only appended to.
 */
export interface Findings {
  /** Acknowledged, but not in the store with an ending. */
  readonly lost: string[];
  /** Outcomes that did not stay what they were, and answers to a canceller that turned out wrong. */
  readonly changed: string[];
  /**
   * Work done by somebody who had no right to it: two claims of one fence, a late write, an unsafe command run twice.
   */
  readonly double: string[];
  /** Anything else: a transition that does not exist, a limit passed, a damaged file, a task left over. */
  readonly other: string[];
}

/** What was asked and seen of one task while the run went on. */
interface Observed {
  readonly cancels: readonly CancelLine[];
  readonly answers: readonly AnswerLine[];
  /** Hashes of its outcome, by everybody who saw it. */
  readonly hashes: readonly string[];
}

export interface Row {
  readonly task_id: string;
  readonly command: string;
  readonly input: string;
  readonly idempotency_key: string;
  readonly status: string;
  readonly is_safe: number;
  readonly max_attempts: number;
  readonly fence: number;
  readonly attempts: number;
  readonly crashes: number;
  readonly outcome: string | null;
  readonly finished_at: number | null;
}

export interface AuditLine {
  readonly at: number;
  readonly task_id: string;
  readonly old_status: string;
  readonly new_status: string;
  readonly old_fence: number;
  readonly new_fence: number;
  readonly old_worker: string | null;
  readonly new_worker: string | null;
  readonly was_over: number;
  readonly is_crash: number;
}

const ends = ["completed", "failed", "cancelled"];
const allowed: Record<string, readonly string[]> = {
  queued: ["working", "cancelled"],
  working: ["queued", "input_required", ...ends],
  input_required: ["working", "queued", "input_required", ...ends],
};

export function readLines<T>(file: string): T[] {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, "utf8").split("\n");
  return lines.filter((line) => line !== "").map((line) => JSON.parse(line) as T);
}

/** Of an outcome as JSON, however that is spaced. */
export function hashOf(status: string, outcome: string | null): string {
  return createHash("sha256")
    .update(`${status} ${outcome === null ? "" : JSON.stringify(JSON.parse(outcome))}`)
    .digest("base64url");
}

/** Looks at what a run has left behind; `firstHashes` are those of outcomes when they were first seen in the store. */
export async function check(ground: Ground, firstHashes: ReadonlyMap<string, string>): Promise<Findings> {
  const findings: Findings = { lost: [], changed: [], double: [], other: [] };
  const rows = await ground.rows();
  const byId = new Map(rows.map((row) => [row.task_id, row]));
  const audit = Map.groupBy(await ground.audit(), (line) => line.task_id);
  const linesOf = <T>(name: string) => readLines<T>(path.join(ground.address.folder, `${name}.jsonl`));
  const runs = Map.groupBy(linesOf<RunLine>("runs"), (line) => line.key);
  const cancels = Map.groupBy(linesOf<CancelLine>("cancels"), (line) => line.taskId);
  const answers = Map.groupBy(linesOf<AnswerLine>("answers"), (line) => line.taskId);
  const seen = Map.groupBy(linesOf<SeenLine>("seen"), (line) => line.taskId);
  checkAcks(findings, linesOf<Ack>("acks"), byId);
  for (const row of rows) {
    const lines = audit.get(row.task_id) ?? [];
    const { key } = JSON.parse(row.input) as { key: string };
    const first = firstHashes.get(row.task_id);
    const observed = {
      cancels: cancels.get(row.task_id) ?? [],
      answers: answers.get(row.task_id) ?? [],
      hashes: [...(first === undefined ? [] : [first]), ...(seen.get(row.task_id) ?? []).map(({ hash }) => hash)],
    };
    checkTransitions(findings, row, lines);
    checkRuns(findings, row, { lines, runs: runs.get(key) ?? [] });
    checkOutcome(findings, row, { key, runs: runs.get(key) ?? [], observed });
    checkLimits(findings, row);
  }
  findings.other.push(...(await ground.damage()), ...linesOf<{ text: string }>("troubles").map(({ text }) => text));
  return findings;
}

function checkAcks(findings: Findings, acks: readonly Ack[], byId: ReadonlyMap<string, Row>): void {
  const idOfKey = new Map<string, string>();
  for (const { taskId, key } of acks) {
    const row = byId.get(taskId);
    if (row === undefined) findings.lost.push(`${taskId} was acknowledged and is gone`);
    else if (row.finished_at === null) findings.lost.push(`${taskId} was acknowledged and is still ${row.status}`);
    if ((idOfKey.get(key) ?? taskId) !== taskId) findings.double.push(`${key} was acknowledged as two tasks`);
    idOfKey.set(key, taskId);
  }
}

function checkTransitions(findings: Findings, row: Row, lines: readonly AuditLine[]): void {
  const claims = lines.filter((line) => line.new_fence !== line.old_fence);
  for (const line of lines) {
    const step = `${row.task_id} ${line.old_status} → ${line.new_status}`;
    if (line.was_over === 1) findings.changed.push(`${step} after its end`);
    else if (line.old_status !== line.new_status && !allowed[line.old_status]?.includes(line.new_status))
      findings.other.push(`${step} is no transition`);
    const isClaim = line.old_status === "queued" && line.new_status === "working";
    if (isClaim && (line.new_fence !== line.old_fence + 1 || line.new_worker === null))
      findings.double.push(`${step} without a fence of its own`);
    if (!isClaim && line.new_fence !== line.old_fence) findings.double.push(`${step} changed the fence`);
    if (!isClaim && line.new_worker !== null && line.new_worker !== line.old_worker)
      findings.double.push(`${step} changed hands without a claim`);
    if (row.is_safe === 0 && line.is_crash === 1 && line.new_status !== "failed")
      findings.double.push(`${step} although running it again is not safe`);
  }
  if (claims.length !== row.fence)
    findings.double.push(`${row.task_id} was claimed ${claims.length} times under ${row.fence} fences`);
  const endings = lines.filter((line) => line.was_over === 0 && ends.includes(line.new_status)).length;
  if (endings > 1 || (row.finished_at !== null && endings === 0))
    findings.changed.push(`${row.task_id} ended ${endings} times`);
}

function checkRuns(
  findings: Findings,
  row: Row,
  { lines, runs }: { lines: readonly AuditLine[]; runs: readonly RunLine[] },
): void {
  const starts = runs.filter(({ what }) => what === "start");
  const claimedBy = new Map(
    lines.filter((line) => line.new_fence > line.old_fence).map((line) => [line.new_fence, line.new_worker ?? ""]),
  );
  for (const [attempt, same] of Map.groupBy(starts, (line) => line.attempt)) {
    if (same.length > 1) findings.double.push(`${row.task_id} attempt ${attempt} was started ${same.length} times`);
    const worker = claimedBy.get(attempt);
    if (worker === undefined) findings.double.push(`${row.task_id} attempt ${attempt} ran without a claim`);
    // An isolated attempt runs in a child of the worker's.
    else if (row.command !== "isolated" && worker.split("|")[2] !== String(same[0]?.pid))
      findings.double.push(`${row.task_id} attempt ${attempt} was run by somebody else`);
  }
  if (row.is_safe === 0 && starts.length > 1)
    findings.double.push(`${row.task_id} is not safe to run again and ran ${starts.length} times`);
  for (const { step, attempt } of runs.filter(({ what }) => what === "kept")) {
    const again = runs.find((line) => line.what === "step" && line.step === step && line.attempt > attempt);
    if (again !== undefined)
      findings.double.push(
        `${row.task_id} did step ${step} again in attempt ${again.attempt}; it was kept in ${attempt}`,
      );
  }
}

function checkOutcome(
  findings: Findings,
  row: Row,
  { key, runs, observed }: { key: string; runs: readonly RunLine[]; observed: Observed },
): void {
  if (observed.hashes.some((hash) => hash !== hashOf(row.status, row.outcome)))
    findings.changed.push(`${row.task_id} has another outcome than somebody saw`);
  checkCancels(findings, row, observed.cancels);
  if (row.status !== "completed") return;
  const { data } = JSON.parse(row.outcome ?? "{}") as {
    data: { key: string; attempt: number; colour?: string; ranIn?: number[] };
  };
  if (data.key !== key) findings.changed.push(`${row.task_id} has the result of ${data.key}`);
  if (data.attempt !== row.fence)
    findings.double.push(`${row.task_id} took a late result: of attempt ${data.attempt}, under fence ${row.fence}`);
  if (!runs.some(({ what, attempt }) => what === "finish" && attempt === data.attempt))
    findings.other.push(`${row.task_id} completed, but never finished`);
  if (data.colour !== undefined) checkColour(findings, row, { colour: data.colour, answers: observed.answers });
  for (const [at, attempt] of (data.ranIn ?? []).entries()) {
    const isTrue = runs.some(
      (line) => line.what === "step" && line.step === ["one", "two", "three"][at] && line.attempt === attempt,
    );
    if (!isTrue) findings.changed.push(`${row.task_id} remembers a step that attempt ${attempt} never did`);
  }
}

/** Who was killed while it asked may have been first. */
function checkCancels(findings: Findings, row: Row, lines: readonly CancelLine[]): void {
  const told = lines.filter((line) => line.told !== undefined);
  const wasToldSo = told.some((line) => line.told === true);
  const mayBe = lines.length - told.length > told.length;
  const isCancelled = row.status === "cancelled";
  if (wasToldSo ? !isCancelled : isCancelled && !mayBe)
    findings.changed.push(`${row.task_id} is ${row.status}, but its cancellers were told ${JSON.stringify(told)}`);
}

function checkColour(
  findings: Findings,
  { task_id }: Row,
  { colour, answers }: { colour: string; answers: readonly AnswerLine[] },
): void {
  if (!answers.some((line) => line.colour === colour)) findings.changed.push(`${task_id} heard an answer nobody gave`);
  const taken = answers.filter((line) => line.told === true);
  if (taken.some((line) => line.colour !== colour))
    findings.changed.push(`${task_id} heard another answer than the one that was taken`);
  if (answers.some((line) => line.colour === colour && line.told === false))
    findings.changed.push(`${task_id} heard an answer that was refused`);
}

function checkLimits(findings: Findings, row: Row): void {
  if (row.finished_at === null) findings.other.push(`${row.task_id} is still ${row.status}`);
  if (row.crashes > maxCrashes) findings.other.push(`${row.task_id} crashed ${row.crashes} times`);
  if (row.attempts > Math.max(row.max_attempts, maxOwnCrashes))
    findings.other.push(`${row.task_id} had ${row.attempts} attempts`);
}
