import { numberOf } from "../../../wire/json.ts";
import {
  askSpeaker,
  paramsOf,
  saidWith,
  startCall,
  stopCalls,
  waitUntil,
} from "../../asking/progress/watched-calls.ts";
import { type Check, failed, passed, skipped } from "../../check.ts";

const enough = 2;

export const check: Check = {
  id: "progress/parallel",
  question: "Do two calls at the same time each get their own progress?",
  severity: "major",
  why: "A server that remembers one token for all gives one call the progress of the other: hosts that run tools in parallel show the wrong bar and cut the call that seems dead.",
  remedy:
    "Take the token from the request of each call and hand it to the work as an argument; keep it in no variable that calls share.",
  source: "MCP 2025-11-25, Progress, Behavior Requirements; MCP 2026-07-28, Progress.",
  isThorough: true,
  limitMs: 40_000,
  run: (probe) =>
    askSpeaker(probe, async (session, { call }) => {
      await stopCalls(session, call);
      const { callable } = call;
      const pair = ["meanwhile-left", "meanwhile-right"].map((token) => startCall(probe, session, callable, token));
      const valuesOf = (token: string | number | undefined) =>
        saidWith(session, token).flatMap(({ message }) => numberOf(paramsOf(message).progress) ?? []);
      const isThere = () => pair.every(({ token }) => valuesOf(token).length >= enough);
      await waitUntil(probe, session, { isThere, calls: pair, untilMs: 12_000 });
      await stopCalls(session, ...pair);
      const [left = [], right = []] = pair.map(({ token }) => valuesOf(token));
      if (left.length === 0 && right.length === 0)
        return skipped(
          "Two calls at the same time send no progress, though one does; name another tool with --tool and --args.",
        );
      const evidence = [
        probe.sent("the same tools/call twice, at the same time, with the tokens left and right"),
        probe.received({ left: left.slice(0, 10), right: right.slice(0, 10) }),
      ];
      if (left.length === 0 || right.length === 0)
        return failed({ title: "Of two calls at the same time only one gets progress", evidence });
      const isMixed = [left, right].some((values) =>
        values.some((value, index) => index > 0 && value <= (values[index - 1] as number)),
      );
      return isMixed && isClean(call.token)
        ? failed({ title: "Two calls at the same time get each other's progress", evidence })
        : passed();

      /** Values that do not grow even in a single call are what progress/increasing is about. */
      function isClean(token: string | number | undefined): boolean {
        const alone = valuesOf(token);
        return alone.every((value, index) => index === 0 || value > (alone[index - 1] as number));
      }
    }),
};
