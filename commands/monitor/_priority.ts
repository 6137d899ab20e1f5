import type Database from "better-sqlite3";
import { folderOf, isInside, nameOf } from "../_pack/paths.ts";

/** A folder and how much what lies in it counts. */
export interface PriorityRule {
  readonly path: Buffer;
  readonly priority: number;
}

/** Each folder further down counts for less. */
const perFolder = 0.9;
/** Each underscore at the beginning of a name does, too: people put away what begins with one. */
const perUnderscore = 0.5;

export function readPriorities(db: Database.Database): PriorityRule[] {
  return db.prepare("select path, priority from monitor_priority_settings order by path").all() as PriorityRule[];
}

/** The score of files right in a folder: the nearest rule's number, less for each folder below it and each leading underscore; 0 where no rule is. */
export function priorityIn(folder: Buffer, rules: readonly PriorityRule[]): (name: Buffer) => number {
  const rule = nearestRule(folder, rules);
  if (rule === undefined) return () => 0;
  let score = rule.priority;
  for (let at = folder; !at.equals(rule.path); at = folderOf(at)) score *= perFolder * perUnderscore ** underscoresOf(nameOf(at));
  return (name) => round(score * perUnderscore ** underscoresOf(name));
}

export function nearestRule(folder: Buffer, rules: readonly PriorityRule[]): PriorityRule | undefined {
  return rules
    .filter((rule) => isInside(folder, rule.path))
    .reduce<PriorityRule | undefined>((best, rule) => (rule.path.length > (best?.path.length ?? -1) ? rule : best), undefined);
}

function underscoresOf(name: Buffer): number {
  return /^_*/.exec(name.toString())?.[0].length ?? 0;
}

function round(score: number): number {
  return Math.round(score * 1000) / 1000;
}
