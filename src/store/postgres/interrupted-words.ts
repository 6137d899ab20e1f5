import { maxCrashes, type TaskOutcome } from "../../task/task.ts";
import { interruptedCallOutcome, interruptedMessage, interruptedOutcome } from "../../task/transitions.ts";
import type { PostgresValues } from "./task-rows.ts";

/** What becomes of a task whose worker is gone, in the words of the rules. */
export function interruptedWords(): PostgresValues {
  const crashed = interruptedOutcome(true, maxCrashes);
  const unknown = interruptedOutcome(false, 1);
  const call = interruptedCallOutcome();
  return {
    maxCrashes,
    once: interruptedMessage(1),
    often: interruptedMessage(2).replace("2", "#"),
    call: JSON.stringify(call),
    crashed: JSON.stringify(crashed),
    unknown: JSON.stringify(unknown),
    callMessage: messageOf(call),
    crashedMessage: messageOf(crashed),
    unknownMessage: messageOf(unknown),
  };
}

function messageOf(outcome: TaskOutcome): string {
  return outcome.ending === "completed" ? "" : outcome.message;
}
