import { sleep } from "../../../clock.ts";
import { isObject, type Json, numberOf } from "../../../wire/json.ts";
import {
  askSpeaker,
  isProgress,
  paramsOf,
  saidWith,
  stopCalls,
  type WatchedCall,
  waitUntil,
} from "../../asking/progress/watched-calls.ts";
import { type Check, failed, passed, skipped } from "../../check.ts";
import type { ProbeSession } from "../../wire/probe-session.ts";

const listenMs = 300;

export const check: Check = {
  id: "progress/after-end",
  question: "Is a call's progress silent once its answer was sent?",
  severity: "minor",
  why: "The client has forgotten the token by then: SDK clients report an error for each late notification, and one that was given out again moves another call's bar.",
  remedy: "Send the last progress before the answer, and drop the token and its timers when the call ends.",
  source: "MCP 2025-11-25, Progress: notifications MUST stop after completion; MCP 2026-07-28, Progress.",
  limitMs: 30_000,
  run: (probe) =>
    askSpeaker(probe, async (session, { call }) => {
      const untilMs = probe.isFull ? 20_000 : 6_000;
      if (estimateMs(session, call) < untilMs)
        await waitUntil(probe, session, { isThere: () => call.ended() !== undefined, calls: [call], untilMs });
      const end = call.ended();
      if (end === undefined) {
        await stopCalls(session, call);
        return skipped(
          "The call takes too long to wait for its end; name a tool that ends sooner with --tool and --args.",
        );
      }
      await sleep(probe.clock, listenMs, probe.signal);
      const late = lateNotes(session, call, end.at);
      if (late.length === 0) return passed();
      return failed({
        title: "Progress comes after the call's answer",
        evidence: [probe.received({ id: "…", result: "…" }), ...late.slice(0, 2).map((note) => probe.received(note))],
      });
    }),
};

/** How long the call takes, by its own first word. */
function estimateMs(session: ProbeSession, { token, startedAt }: WatchedCall): number {
  const [first] = saidWith(session, token);
  const { progress, total } = first === undefined ? {} : paramsOf(first.message);
  const part = (numberOf(progress) ?? 0) / (numberOf(total) ?? Number.POSITIVE_INFINITY);
  return first === undefined || !(part > 0) ? 0 : (first.at - startedAt) / part;
}

/** Over pipes by the order of lines, since several can arrive at once. */
function lateNotes(session: ProbeSession, { id, token }: WatchedCall, endedAt: number): readonly Json[] {
  if (session.pipe === undefined)
    return saidWith(session, token).flatMap(({ at, message }) => (at > endedAt ? [message] : []));
  const messages = session.pipe.lines.flatMap(({ json }) => (isObject(json) ? [json] : []));
  const answer = messages.findIndex((message) => message.id === id && message.method === undefined);
  return messages
    .slice(answer + 1)
    .filter((message) => isProgress(message) && paramsOf(message).progressToken === token);
}
