import {
  askSpeaker,
  paramsOf,
  progressOf,
  saidWith,
  startCall,
  stopCalls,
  type WatchedCall,
  waitUntil,
} from "../../asking/progress/watched-calls.ts";
import { type Check, failed, passed } from "../../check.ts";

const numberToken = 7;

export const check: Check = {
  id: "progress/token",
  question: "Does progress carry the very token of its call, be it a text or a number?",
  severity: "major",
  why: "Clients know by the token which call is alive. Progress with another one is thrown away: nothing is shown, and hosts whose clock is reset by progress (opencode 60 s, Copilot CLI 180 s) cut the call.",
  remedy: "Send `params._meta.progressToken` of the request back as it came: the same value, and a number as a number.",
  source: "MCP 2025-11-25, Progress, Progress Flow; MCP 2026-07-28, Progress; measured hosts.",
  limitMs: 30_000,
  run: (probe) =>
    askSpeaker(probe, async (session, { call }) => {
      await stopCalls(session, call);
      const tokens = new Set<unknown>(["meanwhile-1", "meanwhile-2"]);
      const isOurs = () => progressOf(session).every(({ message }) => tokens.has(paramsOf(message).progressToken));
      const strange = (title: string) => {
        const note = progressOf(session).find(({ message }) => !tokens.has(paramsOf(message).progressToken));
        return failed({
          title,
          evidence: [probe.sent({ _meta: { progressToken: [...tokens].at(-1) } }), probe.received(note?.message)],
        });
      };
      if (!isOurs()) return strange("Progress comes with another token than its call's");
      const numbered = startCall(probe, session, call.callable, numberToken);
      tokens.add(numberToken);
      await waitUntil(probe, session, {
        isThere: () => saidWith(session, numberToken).length > 0 || !isOurs(),
        calls: [numbered],
        untilMs: likeBefore(call),
      });
      await stopCalls(session, numbered);
      if (!isOurs()) return strange("Progress of a call whose token is a number comes with another one");
      if (saidWith(session, numberToken).length > 0) return passed();
      return failed({
        title: "A call whose token is a number gets no progress",
        evidence: [
          probe.sent({ _meta: { progressToken: numberToken } }),
          probe.received("(no progress, though a text as token gets some)"),
        ],
      });

      /** As long as the first call needed to say something, and some more. */
      function likeBefore({ startedAt, token }: WatchedCall): number {
        const [first] = saidWith(session, token);
        return 2 * ((first?.at ?? startedAt) - startedAt) + 2_000;
      }
    }),
};
