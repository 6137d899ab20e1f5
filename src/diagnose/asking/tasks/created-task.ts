import { isObject, type Json, numberOf, textOf } from "../../../wire/json.ts";
import { legacyRevision, modernRevision } from "../../../wire/revisions.ts";
import type { ProbeAnswer } from "../../wire/probe-session.ts";
import type { Generation } from "./task-generation.ts";

/** Reading what a server calls a task. */

export const statuses = ["working", "input_required", "completed", "failed", "cancelled"] as const;
const terminal: readonly unknown[] = ["completed", "failed", "cancelled"];

export function isTerminal(task: Json): boolean {
  return terminal.includes(task.status);
}

/** The task in the answer to a call; undefined when there is none. */
export function createdTask(generation: Generation, { result }: Pick<ProbeAnswer, "result">): Json | undefined {
  if (result === undefined) return undefined;
  if (generation === legacyRevision) return isObject(result.task) ? result.task : undefined;
  if (result.resultType === "task" || (result.resultType === undefined && textOf(result.taskId) !== undefined))
    return result;
  return isObject(result.task) && textOf(result.task.taskId) !== undefined ? result : undefined;
}

export const fieldNames = {
  [legacyRevision]: { ttl: "ttl", poll: "pollInterval" },
  [modernRevision]: { ttl: "ttlMs", poll: "pollIntervalMs" },
} as const;

/** How often it wants to be asked, in milliseconds. */
export function pollMsOf(generation: Generation, task: Json): number | undefined {
  return numberOf(task[fieldNames[generation].poll]);
}

export function ttlMsOf(generation: Generation, task: Json): number | null | undefined {
  const ttl = task[fieldNames[generation].ttl];
  return ttl === null ? null : numberOf(ttl);
}

const isoTime = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?$/i;

/** What is missing or of a wrong kind, each as half a sentence: `ttl is missing`. */
export function fieldProblems(generation: Generation, task: Json): string[] {
  const { ttl, poll } = fieldNames[generation];
  const found: string[] = [];
  const demand = (field: string, isRight: (value: unknown) => boolean, kind: string) => {
    const value = task[field];
    if (!isRight(value)) found.push(value === undefined ? `${field} is missing` : `${field} is no ${kind}`);
  };
  demand("taskId", (value) => typeof value === "string" && value !== "", "text with at least one character");
  demand("status", (value) => (statuses as readonly unknown[]).includes(value), "status of a task");
  for (const field of ["createdAt", "lastUpdatedAt"])
    demand(
      field,
      (value) => typeof value === "string" && isoTime.test(value) && !Number.isNaN(Date.parse(value.replace(",", "."))),
      "time of ISO 8601",
    );
  demand(ttl, (value) => value === null || (numberOf(value) ?? -1) >= 0, "number of milliseconds and not null");
  demand(poll, (value) => value === undefined || numberOf(value) !== undefined, "number of milliseconds");
  demand("statusMessage", (value) => value === undefined || typeof value === "string", "text");
  return found;
}

const anyTime = /\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}[\d.]*(?:Z|[+-]\d{2}:?\d{2})?/g;

const anyId = /"taskId":"(?:[^"\\]|\\.)+"/g;

/** A message as text, with ids and times taken out. */
export function steady(value: unknown, ids: Iterable<string>): string {
  let text = JSON.stringify(value) ?? "(nothing)";
  for (const id of ids) if (id.length >= 4) text = text.replaceAll(JSON.stringify(id).slice(1, -1), "<task id>");
  return text.slice(0, 20_000).replaceAll(anyId, '"taskId":"<task id>"').replaceAll(anyTime, "<time>");
}
