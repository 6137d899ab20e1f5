import { sleep } from "../../../clock.ts";
import {
  askSpeaker,
  paramsOf,
  progressOf,
  startCall,
  stopCalls,
  waitUntil,
} from "../../asking/progress/watched-calls.ts";
import { type Check, failed, passed, skipped } from "../../check.ts";

const settleMs = 100;

export const check: Check = {
  id: "progress/uninvited",
  question: "Does a call without a token get no progress?",
  severity: "minor",
  why: "Progress that nobody asked for refers to no call: SDK clients report an error for each, and some hosts write it into their log or their user's window.",
  remedy: "Send notifications/progress only when the request has `params._meta.progressToken`, and with that token.",
  source: "MCP 2025-11-25, Progress, Behavior Requirements; MCP 2026-07-28, Progress.",
  isThorough: true,
  limitMs: 30_000,
  run: (probe) =>
    askSpeaker(probe, async (session, { call, others }) => {
      await stopCalls(session, call);
      const isUninvited = () =>
        progressOf(session).find(
          ({ message }) => ![call, ...others].some(({ token }) => token === paramsOf(message).progressToken),
        );
      // With foreign tokens already on the first call that is for progress/token.
      if (isUninvited() !== undefined)
        return skipped("Progress comes with tokens of no call anyway; see progress/token.");
      const [first] = progressOf(session);
      const silent = startCall(probe, session, call.callable);
      const untilMs = 1.2 * ((first?.at ?? call.startedAt) - call.startedAt) + 200;
      await waitUntil(probe, session, { isThere: () => isUninvited() !== undefined, calls: [silent], untilMs });
      await sleep(probe.clock, settleMs, probe.signal);
      await stopCalls(session, silent);
      const note = isUninvited();
      if (note === undefined) return passed();
      return failed({
        title: "A call without a token gets progress",
        evidence: [
          probe.sent({ method: "tools/call", params: { name: call.callable.tool.name } }),
          probe.received(note.message),
        ],
      });
    }),
};
