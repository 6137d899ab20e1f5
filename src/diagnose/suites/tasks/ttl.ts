import { sleep } from "../../../clock.ts";
import type { Probe } from "../../asking/probe.ts";
import { fieldNames, ttlMsOf } from "../../asking/tasks/created-task.ts";
import { askMade, type Followed, followMade, type MadeTask, whyNoEnd } from "../../asking/tasks/make-task.ts";
import { askTask, exchange, type Judgement, type Problem, type Talk } from "../../asking/tasks/task-generation.ts";
import type { Check } from "../../check.ts";

const askedMs = 1_000;
/**
 * Longer lifetimes are not waited for; then the task must still be there after this, when what was asked for is over.
 */
const watchedMs = 1_300;
const followMs = 15_000;
/** Clocks, and how long an answer travels. */
const marginMs = 150;

export const check: Check = {
  id: "tasks/ttl",
  question: "Is a task kept as long as it says?",
  severity: "major",
  why: "The client shows its user a result until the ttl is over and comes back for it in that time. When it is gone before, the work was for nothing.",
  remedy:
    "Report the ttl that you really keep, also when you override what the client asked for, and count it so that a running task is never deleted: from its end, or renewed while it runs.",
  source: "MCP 2025-11-25, Tasks, TTL and Resource Management; SEP-2663, Tasks; nitrostack #329.",
  isThorough: true,
  limitMs: 40_000,
  isGentle: true,
  run: (probe) =>
    askMade(probe, { severity: "major", ttl: askedMs }, async (talk, made): Promise<Judgement> => {
      const followed = await followMade(talk, made, followMs);
      // Whether it is known at all is the question of tasks/create.
      const gone =
        followed.end === "unknown" && followed.seen.length > 0 ? goneProblem(talk, made, followed) : undefined;
      if (gone !== undefined) return { problems: [gone] };
      if (followed.end !== "terminal") return { skip: whyNoEnd(followed.end, followMs) };
      return await judgeKept(talk, made, followed);
    }),
};

/** Forgotten while it was followed: too early by its own word, or while it still ran. */
function goneProblem(talk: Talk, made: MadeTask, { seen, answer }: Followed): Problem | undefined {
  const last = seen.at(-1)?.task ?? made.task;
  const { ttlMs, leftMs } = leftOf(talk, made, last);
  const evidence = evidenceOf(talk, made, { ttlMs, answer });
  if (leftMs > marginMs) return { title: "A task is gone before its ttl is over", evidence };
  return {
    title: "A task is deleted while it runs, because its ttl counts from its creation",
    // Allowed, and a client that asked for so little has been told; but it is a result that nobody gets.
    severity: "info",
    evidence,
  };
}

async function judgeKept(talk: Talk, made: MadeTask, { seen }: Followed): Promise<Judgement> {
  const { clock, signal } = talk.probe;
  const last = seen.at(-1)?.task ?? made.task;
  const { ttlMs, leftMs } = leftOf(talk, made, last);
  const waitMs = Math.min(leftMs - 2 * marginMs, Math.max(watchedMs - (clock.monotonic() - made.at), 200));
  if (waitMs > 0) await sleep(clock, waitMs, signal);
  if (waitMs <= 0) return { problems: [], note: `the task outlived its ${fieldNames[talk.generation].ttl}.` };
  const answer = await askTask(talk, "tasks/get", made.taskId);
  if (answer.result !== undefined || answer.error?.code !== -32602) return { problems: [] };
  return {
    problems: [{ title: "A task is gone before its ttl is over", evidence: evidenceOf(talk, made, { ttlMs, answer }) }],
  };
}

function leftOf(
  { generation, probe }: { generation: Talk["generation"]; probe: Pick<Probe, "clock"> },
  made: MadeTask,
  task: MadeTask["task"],
) {
  const ttlMs = ttlMsOf(generation, task) ?? null;
  const leftMs = ttlMs === null ? Number.POSITIVE_INFINITY : made.at + ttlMs - probe.clock.monotonic();
  return { ttlMs, leftMs };
}

function evidenceOf(
  talk: Talk,
  made: MadeTask,
  { ttlMs, answer }: { readonly ttlMs: number | null; readonly answer: Followed["answer"] },
) {
  const field = fieldNames[talk.generation].ttl;
  const agedMs = Math.round(talk.probe.clock.monotonic() - made.at);
  const told = ttlMs === null ? "null (kept for ever)" : `${ttlMs}`;
  return [
    talk.probe.measured(`${field} was told as ${told}; ${agedMs} ms after its creation the task was gone.`),
    ...exchange(talk, { method: "tasks/get" }, answer),
  ];
}
