import { fieldsOf, type Json, listOf } from "../../../wire/json.ts";
import { metaKeys } from "../../../wire/request-envelope.ts";
import { modernRevision } from "../../../wire/revisions.ts";
import { isTerminal, steady } from "../../asking/tasks/created-task.ts";
import { askMade, followMade, patienceMs, whyNoEnd } from "../../asking/tasks/make-task.ts";
import { exchange, type Judgement, type Problem, type Talk } from "../../asking/tasks/task-generation.ts";
import type { Check } from "../../check.ts";

const acknowledgedMs = 1_500;
const pushedMs = 1_500;

export const check: Check = {
  id: "tasks/listen",
  question: "Does a server that promises to tell of a task's changes do so?",
  severity: "major",
  why: "A client that was promised notifications polls little or not at all; when the last one never comes, its user waits for a result that is there.",
  remedy:
    "Acknowledge in subscriptions/listen only the taskIds whose changes you send, and send a notifications/tasks with the whole task for every change, the ending included, on that stream and with its subscription id.",
  source: "SEP-2663, Task Status Notifications; MCP 2026-07-28, Subscriptions.",
  limitMs: 30_000,
  run: (probe) =>
    askMade(probe, { severity: "major", only: modernRevision }, async (talk, made): Promise<Judgement> => {
      const { taskId } = made;
      const listening = talk.session.start(
        "subscriptions/listen",
        { notifications: { taskIds: [taskId] } },
        { timeoutMs: 25_000 },
      );
      const isAck = ({ method }: Json) => method === "notifications/subscriptions/acknowledged";
      const refused = listening.answer.then(() => undefined);
      const ack = await Promise.race([talk.session.waitHeard(isAck, acknowledgedMs), refused]);
      const promised = listOf(fieldsOf(fieldsOf(ack?.message.params).notifications).taskIds);
      if (!promised.includes(taskId))
        return { skip: "The server does not offer to tell of a task's changes (subscriptions/listen with taskIds)." };
      const followed = await followMade(talk, made, patienceMs(probe));
      const ended = followed.seen.at(-1);
      if (followed.end !== "terminal" || ended === undefined)
        return { skip: whyNoEnd(followed.end, patienceMs(probe)) };
      const isEnd = (message: Json) => isAbout(message, taskId) && isTerminal(fieldsOf(message.params));
      const told = await talk.session.waitHeard(isEnd, pushedMs);
      // An end that came before the acknowledgement did need not be told.
      if (told === undefined && followed.seen.length === 1)
        return { skip: "The task ended before it could be listened to; name a slower tool with --tool and --args." };
      if (told === undefined)
        return {
          problems: [
            {
              title: "The server promises to tell of a task's changes, and does not tell of its end",
              evidence: exchange(talk, { method: "tasks/get" }, ended.answer),
            },
          ],
        };
      return { problems: toldProblems(talk, fieldsOf(told.message.params), ended.task) };
    }),
};

function isAbout({ method, params }: Json, taskId: string): boolean {
  return method === "notifications/tasks" && fieldsOf(params).taskId === taskId;
}

function toldProblems(talk: Talk, told: Json, task: Json): Problem[] {
  const evidence = [talk.probe.received(steady({ method: "notifications/tasks", params: told }, talk.ids))];
  if (told.status !== task.status || JSON.stringify(told.result) !== JSON.stringify(task.result))
    return [{ title: "notifications/tasks tells another ending than tasks/get", evidence }];
  if (fieldsOf(told._meta)[metaKeys.subscription] === undefined)
    return [
      { title: "notifications/tasks does not say to which subscription it belongs", severity: "minor", evidence },
    ];
  return [];
}
