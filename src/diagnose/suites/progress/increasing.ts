import { numberOf } from "../../../wire/json.ts";
import { askRecorded, paramsOf, saidWith } from "../../asking/progress/watched-calls.ts";
import { type Check, failed, passed, skipped } from "../../check.ts";

export const check: Check = {
  id: "progress/increasing",
  question: "Does progress grow with every notification, and stay within its total?",
  severity: "minor",
  why: "A bar that stands still, jumps back or passes its end tells users that something hangs or is wrong, and they stop a call that is fine.",
  remedy:
    "Raise `progress` with every notification, by as little as you like; send none when nothing has moved; and keep `total` at or above it.",
  source: "MCP 2025-11-25, Progress: the value MUST increase with each notification; MCP 2026-07-28, Progress.",
  limitMs: 30_000,
  run: (probe) =>
    askRecorded(probe, (recording, call) => {
      const said = saidWith(recording, call.token).map(({ message }) => paramsOf(message));
      const values = said.flatMap(({ progress, total }) => {
        const value = numberOf(progress);
        return value === undefined ? [] : [{ value, total: numberOf(total) }];
      });
      const evidence = [
        probe.received(
          `progress, in order: ${values
            .slice(0, 20)
            .map(({ value, total }) => (total === undefined ? `${value}` : `${value} of ${total}`))
            .join(", ")}`,
        ),
      ];
      const fault = (title: string, more = {}) => failed({ title, evidence, ...more });
      if (values.some(({ value }, index) => index > 0 && value < (values[index - 1]?.value ?? 0)))
        return fault("progress goes back");
      if (values.some(({ value }, index) => index > 0 && value === values[index - 1]?.value))
        return fault("progress is sent again with the same value");
      if (values.some(({ value, total }) => total !== undefined && value > total))
        return fault("progress passes its total");
      const totals = new Set(values.flatMap(({ total }) => total ?? []));
      if (totals.size > 1) return fault("The total of progress changes during a call", { severity: "info" });
      return values.length < 2
        ? skipped("Only one progress came; name a tool that sends several with --tool and --args.")
        : passed();
    }),
};
