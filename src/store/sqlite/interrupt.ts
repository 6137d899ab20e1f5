import { maxCrashes, type TaskOutcome } from "../../task/task.ts";
import { interruptedCallOutcome, interruptedMessage, interruptedOutcome } from "../../task/transitions.ts";
import { type EndedRow, keepEnd } from "./end-task.ts";
import type { TaskFile } from "./task-file.ts";

/** The running tasks of one worker, or those whose lease expired before this time. */
type LostTasks = { readonly worker: string } | { readonly expiredBefore: number };

/** Queues the lost tasks that may run again, and fails the others. Returns the IDs of both. Part of a transaction. */
export function interruptLost(file: TaskFile, lost: LostTasks, now: number): readonly string[] {
  const which = { worker: "", before: -1, ...("worker" in lost ? lost : { before: lost.expiredBefore }), now };
  const crashed = interruptedOutcome(true, maxCrashes);
  const unknown = interruptedOutcome(false, 1);
  const call = interruptedCallOutcome();
  const again = file.ids("requeueLost", {
    ...which,
    maxCrashes,
    once: interruptedMessage(1),
    often: interruptedMessage(2).replace("2", "#"),
  });
  const ended = file.all<EndedRow>("giveUpLost", {
    ...which,
    call: JSON.stringify(call),
    crashed: JSON.stringify(crashed),
    unknown: JSON.stringify(unknown),
    callMessage: messageOf(call),
    crashedMessage: messageOf(crashed),
    unknownMessage: messageOf(unknown),
  });
  for (const row of ended) keepEnd(file, row);
  return [...again, ...ended.map((row) => row.task_id)];
}

function messageOf(outcome: TaskOutcome): string {
  return outcome.ending === "completed" ? "" : outcome.message;
}
