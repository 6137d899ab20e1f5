import { nextTurn } from "../clock.ts";
import type { Command } from "./command.ts";
import { contentProblem, isContent } from "./content.ts";
import { describeIssue } from "./issues.ts";
import type { Outcome } from "./outcome.ts";
import type { Recorder } from "./recorder.ts";
import { isHeavyTurn, toJson } from "./result-json.ts";
import type { RunOptions } from "./run.ts";
import { type Validated, validate } from "./schema.ts";

interface ReturnedBy {
  readonly command: Command;
  readonly options: RunOptions;
  readonly record: Recorder;
}

/** Checks what a command has returned, and makes an outcome of it: at once where its schema and its client allow it. */
export function toOutcome(returned: unknown, by: ReturnedBy): Outcome | Promise<Outcome> {
  const { command, options, record } = by;
  const { output } = command;
  if (isContent(returned)) {
    if (output !== undefined)
      return record.failed(
        "output",
        `${options.name} declares an output schema but returned content(…); return the data, or remove \`output\`.`,
      );
    const problem = contentProblem(returned.blocks);
    if (problem !== undefined) return record.failed("output", `${options.name} returned content(…) with ${problem}.`);
    return inRoom(returned, by, () => {
      toJson(returned.blocks, options.name);
      return record.completed({ data: {}, json: "{}", content: returned.blocks }, undefined);
    });
  }
  if (output === undefined) return complete(returned ?? {}, by);
  const checked = validate(output, returned);
  return checked instanceof Promise ? checked.then((now) => toChecked(now, by)) : toChecked(checked, by);
}

function toChecked(checked: Validated<unknown>, by: ReturnedBy): Outcome | Promise<Outcome> {
  if (checked.ok) return complete(checked.value, by);
  const why = checked.issues.map(describeIssue).join("; ");
  return by.record.failed(
    "output",
    `${by.options.name} returned something that does not fit its own output schema: ${why}`,
  );
}

function complete(data: unknown, by: ReturnedBy): Outcome | Promise<Outcome> {
  return inRoom(data, by, () => {
    const { summarize, saysNo } = by.command;
    const json = toJson(data, by.options.name);
    const isNo = saysNo !== undefined && tolerate(() => saysNo(data as never)) === true;
    const summary = summarize === undefined ? undefined : tolerate(() => toLine(summarize(data as never)));
    return by.record.completed(isNo ? { data, json, saidNo: true } : { data, json }, summary);
  });
}

function inRoom(result: unknown, by: ReturnedBy, write: () => Outcome): Outcome | Promise<Outcome> {
  const room = waitForRoom(result, by);
  return room === undefined ? write() : writeLater(room, result, by, write);
}

async function writeLater(first: Promise<unknown>, result: unknown, by: ReturnedBy, write: () => Outcome) {
  for (let room: Promise<unknown> | undefined = first; room !== undefined; room = waitForRoom(result, by)) await room;
  return write();
}

/**
 * Returns a promise while a result must not be serialized: another large one was in this turn of the event loop, or
 * there is no room for it. Called again after each wait, because other results wait for the same.
 */
function waitForRoom(result: unknown, { options, record }: ReturnedBy): Promise<unknown> | undefined {
  const room = isHeavyTurn() ? nextTurn() : options.door.room?.(result);
  if (room !== undefined) record.hasReturned();
  return room;
}

/** A summary that says nothing is none. */
function toLine(summary: unknown): string | undefined {
  return typeof summary === "string" && summary.trim() !== "" ? summary : undefined;
}

/** What is said about a result is a courtesy: one that fails must not fail work that is done. */
function tolerate<T>(say: () => T | undefined): T | undefined {
  try {
    return say();
  } catch {
    return undefined;
  }
}
