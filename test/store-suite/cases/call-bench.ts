import assert from "node:assert/strict";
import type { Claim, TaskStore } from "../../../src/task/store.ts";
import type { NewTask } from "../../../src/task/task.ts";
import { assertUnchanged, type Bench, leaseMs, ttlMs } from "./bench.ts";

export const terms = {
  reason: "it took too long",
  ttlMs: 3 * ttlMs,
  rules: { isSafe: true, maxAttempts: 5, backoffMs: 7 },
};
export const unsafe = { isSafe: false, maxAttempts: 1, backoffMs: 0 };
export const claim = { worker: "w1", leaseMs };

/** A question that was settled before there was a record. */
export const answered = {
  message: "Sure?",
  schema: { type: "object" },
  isConfirmation: true,
  key: "q1",
  askedAt: 5,
  answer: { action: "accept" as const, content: { confirm: true } },
};

/** What only a call's own worker may do, and only once. */
export const verbs: Record<string, (store: TaskStore, call: Claim) => Promise<boolean>> = {
  handOut: (store, call) => store.handOut(call, terms),
  forget: (store, call) => store.forget(call),
};

export async function listed(bench: Bench, withCalls?: boolean): Promise<string[]> {
  const { tasks } = await bench.store.list(bench.scope(), {
    limit: 100,
    ...(withCalls !== undefined && { withCalls }),
  });
  return tasks.map(({ taskId }) => taskId);
}

export async function findEqual(bench: Bench, facts: Partial<NewTask> = {}): Promise<string | undefined> {
  const { caller = "ada", project = "home", digest = "same" } = facts;
  return (await bench.store.findEqual(bench.scope(caller), project, digest))?.taskId;
}

/** How often listeners hear of this task while `act` runs. */
export async function timesHeard(bench: Bench, taskId: string, act: () => Promise<unknown>): Promise<number> {
  let count = 0;
  const stop = bench.store.onChange((changed) => {
    if (changed === taskId) count += 1;
  });
  await act();
  stop();
  return count;
}

/** Fails unless handOut and forget are refused, leave the record as it is, and are no news. */
export async function assertRefused(bench: Bench, refused: Claim): Promise<void> {
  for (const [name, act] of Object.entries(verbs)) {
    await assertUnchanged(bench, refused.taskId, async () => {
      const count = await timesHeard(bench, refused.taskId, async () =>
        assert.equal(await act(bench.store, refused), false, name),
      );
      assert.equal(count, 0, name);
    });
  }
}
