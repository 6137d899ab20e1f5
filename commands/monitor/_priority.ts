import { createHash } from "node:crypto";
import path from "node:path";
import type Database from "better-sqlite3";
import { folderOf, isInside, nameOf } from "../_pack/paths.ts";

/** A folder and how much what lies in it counts. */
export interface PriorityRule {
  readonly path: Buffer;
  readonly priority: number;
}

/** What scores are made with, beside the folders' numbers, and what becomes of low ones. */
export interface ScoreSettings {
  /** Each folder further down counts for less. */
  readonly folder_factor: number;
  /** Each underscore at the beginning of a name does, too: people put away what begins with one. */
  readonly underscore_factor: number;
  /** For a name that is an underscore and nothing else, instead. */
  readonly only_underscore_factor: number;
  /** Files that score less are not recorded. */
  readonly minimum_priority: number;
  /** Of more files than this, those that score lowest are forgotten; 0: all are kept. */
  readonly maximum_files: number;
}

export const scoreDefaults: ScoreSettings = {
  folder_factor: 0.9,
  underscore_factor: 0.5,
  only_underscore_factor: 0.1,
  minimum_priority: 0,
  maximum_files: 0,
};

/** Everything that decides a file's score. */
export interface Scoring {
  readonly rules: readonly PriorityRule[];
  readonly settings: ScoreSettings;
  /** By ending, in lower case, with its dot; 1 for all others. */
  readonly weights: ReadonlyMap<string, number>;
  /** Differs when the same folder's files may score differently. */
  readonly key: string;
}

export function readPriorities(db: Database.Database): PriorityRule[] {
  return db.prepare("select path, priority from monitor_priority_settings order by path").all() as PriorityRule[];
}

export function readScoring(db: Database.Database): Scoring {
  const rows = db.prepare("select name, value from monitor_score_settings order by name").all() as {
    name: string;
    value: number;
  }[];
  const set = rows.filter(({ name }) => name in scoreDefaults).map(({ name, value }) => [name, value] as const);
  const settings: ScoreSettings = { ...scoreDefaults, ...Object.fromEntries(set) };
  const weights = new Map(rows.filter(({ name }) => isEnding(name)).map(({ name, value }) => [name, value]));
  return { rules: readPriorities(db), settings, weights, key: JSON.stringify([settings, ...weights]) };
}

/** True for what a weight can be given to: `.md`. */
export function isEnding(name: string): boolean {
  return name.startsWith(".");
}

/** Eight bytes that differ when what a folder's files score may differ. */
export function scoreMark(folder: Buffer, scoring: Scoring): Buffer {
  return createHash("sha256")
    .update(`${scoring.key}\0${scoreOfFolder(folder, scoring)}`)
    .digest()
    .subarray(0, 8);
}

/**
 * The score of files right in a folder: the nearest rule's number, less for each folder below it and each leading
 * underscore, times the weight of the ending; 0 where no rule is.
 */
export function priorityIn(folder: Buffer, scoring: Scoring): (name: Buffer) => number {
  const score = scoreOfFolder(folder, scoring);
  if (score === 0) return () => 0;
  const { settings, weights } = scoring;
  return (bytes) => {
    const name = bytes.toString();
    const weight = weights.size === 0 ? 1 : (weights.get(path.extname(name).toLowerCase()) ?? 1);
    return round(score * underscoreFactor(name, settings) * weight);
  };
}

export function nearestRule(folder: Buffer, rules: readonly PriorityRule[]): PriorityRule | undefined {
  return rules
    .filter((rule) => isInside(folder, rule.path))
    .reduce<PriorityRule | undefined>(
      (best, rule) => (rule.path.length > (best?.path.length ?? -1) ? rule : best),
      undefined,
    );
}

function scoreOfFolder(folder: Buffer, { rules, settings }: Scoring): number {
  const rule = nearestRule(folder, rules);
  if (rule === undefined) return 0;
  let score = rule.priority;
  for (let at = folder; !at.equals(rule.path); at = folderOf(at))
    score *= settings.folder_factor * underscoreFactor(nameOf(at).toString(), settings);
  return score;
}

function underscoreFactor(name: string, { underscore_factor, only_underscore_factor }: ScoreSettings): number {
  return name === "_" ? only_underscore_factor : underscore_factor ** (/^_*/.exec(name)?.[0].length ?? 0);
}

function round(score: number): number {
  return Math.round(score * 1000) / 1000;
}
