import { type DiagnosisTarget, nameOf } from "../../diagnosis-target.ts";
import { printable, quoteWord } from "../../text.ts";
import type { HostSettings } from "./host-settings.ts";
import type { Observation } from "./observe.ts";
import type { Prediction } from "./predict.ts";

/** `Cline CLI and Continue CLI at 60 s, Codex CLI at 300 s`, shortest first. */
export function listCuts(cuts: readonly Prediction[]): string {
  const limits = [...new Set(cuts.map(({ survivesSeconds }) => survivesSeconds ?? 0))].toSorted((a, b) => a - b);
  return limits
    .map(
      (seconds) =>
        `${join(cuts.filter((one) => one.survivesSeconds === seconds).map(({ host }) => host))} at ${seconds} s`,
    )
    .join(", ");
}

/** What to change: in the server, in the hosts, or in front of a server that is somebody else's. */
export function remedyFor({
  cuts,
  hosts,
  seen,
  target,
}: {
  cuts: readonly Prediction[];
  hosts: readonly HostSettings[];
  seen: Observation;
  target: DiagnosisTarget;
}): string {
  const cutHosts = hosts.filter(({ profile }) => cuts.some(({ host }) => host === profile.title));
  const patient = cutHosts.filter(({ notes }) => notes.progress === "extends").map(({ profile }) => profile.title);
  const inServer = [
    ...(patient.length > 0
      ? [
          `send notifications/progress at least every 20 s, also while nothing moves (${seen.progress > 0 ? "more often than now; " : ""}helps ${join(patient)})`,
        ]
      : []),
    "answer within 20 s with a task, or with a plain handle and a tool that waits for it (helps everywhere)",
  ];
  const settable = cutHosts.flatMap(({ profile, notes }) =>
    notes.setting === undefined ? [] : [`${profile.title}: ${notes.setting}`],
  );
  const unsettable = cutHosts.filter(({ notes }) => notes.setting === undefined).map(({ profile }) => profile.title);
  return [
    `In the server: ${inServer.join("; or ")}.`,
    ...(settable.length > 0 ? [`In the host: ${settable.join("; ")}.`] : []),
    ...(unsettable.length > 0 ? [`No setting is known for ${join(unsettable)}.`] : []),
    `If the server is not yours, put Meanwhile in front of it: ${wrapLine(target)}.`,
  ].join(" ");
}

/** In the hosts' files by one command; by hand with what stands in front of what they run now. */
function wrapLine(target: DiagnosisTarget): string {
  const byHand = `meanwhile wrap ${target.kind === "http" ? `--url ${nameOf(target)}` : `-- ${nameOf(target)}`}`;
  const inFiles =
    target.entry === undefined
      ? "`meanwhile setup --wrap` shows what it can do that to in your hosts' settings"
      : `\`meanwhile setup --wrap ${quoteWord(printable(target.entry, 80))}\` does it in your hosts' settings`;
  return `${inFiles}; by hand, let the host run \`${byHand}\``;
}

function join(names: readonly string[]): string {
  return names.length < 2 ? (names[0] ?? "") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}
