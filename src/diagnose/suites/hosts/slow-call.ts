import type { SurveyedTool } from "../../asking/facts.ts";
import { hostsKnown } from "../../asking/hosts/host-settings.ts";
import { declaresTasks, isSlow, type Observation, observeTools } from "../../asking/hosts/observe.ts";
import { isKeptInTime, type Prediction, predict } from "../../asking/hosts/predict.ts";
import { listCuts, remedyFor } from "../../asking/hosts/remedy.ts";
import { mayBeTask } from "../../asking/likely-slow.ts";
import type { Probe } from "../../asking/probe.ts";
import { findStatedDuration } from "../../asking/stated-duration.ts";
import { type Check, type Fault, failed, passed, type Severity, type Skipped, skipped } from "../../check.ts";
import { quoteWord } from "../../text.ts";

/** A server may have a thousand tools; of the table nobody reads more, and the tools that matter come first. */
const maxColumns = 200;
/** Predictions repeat the table with their figures, for programs: so many tools are enough to work with. */
const maxPredicted = 40;

export const check: Check = {
  id: "hosts/slow-call",
  question: "Does every tool survive in every known host when a call takes long?",
  severity: "minor",
  why: "Each host gives a call a time of its own, from 30 s on, and half of them do not care about progress. What a call that was cut would have brought never reaches the model, and the host may run it a second time.",
  remedy: "Send progress at least every 20 s, or answer within 20 s with a task or a plain handle.",
  source: "docs/hosts.md: measured with the real hosts in November 2026; rows from public threads are marked there",
  limitMs: 45_000,
  run: async (probe) => {
    const { tools } = probe.facts;
    if (tools.length === 0) return skipped("The server has no tools.");
    const seen = await observeTools(probe);
    const cases = inOrder(tools.map((tool) => toCase(probe, tool, seen.get(tool.name))));
    const data = toData(probe, cases, seen);
    const faults = cases.flatMap((one) => [...findFault(probe, one), ...findUntested(probe, one)]);
    if (faults.length > 0) return failed(faults, data);
    if (tools.every(isKeptInTime))
      return passed("Every tool is answered inside the host's time: Meanwhile sees to it.", { data });
    if (seen.size === 0) return { ...unasked("No tool was called: name your slow one with --tool <name>."), data };
    if ([...seen.values()].every(({ isFailed }) => isFailed))
      return {
        ...unasked(
          "No call succeeded, which says nothing about its length: give arguments that work with --tool <name> and --args.",
        ),
        data,
      };
    return passed("No tool that was called is slow enough to be cut.", {
      evidence: [...seen].map(([name, one]) => describe(probe, name, one)).slice(0, 4),
      data,
    });
  },
};

/** Skipped, but the table is worth a look: what a host does with a call it waits for too long is known without one. */
function unasked(why: string): Skipped {
  return skipped(why);
}

interface Case {
  readonly tool: SurveyedTool;
  readonly seen: Observation | undefined;
  /** One a host, in the order of the hosts. */
  readonly predictions: readonly Prediction[];
}

function toCase(probe: Probe, tool: SurveyedTool, seen: Observation | undefined): Case {
  return { tool, seen, predictions: hostsKnown.map((host) => predict(host, { tool, seen }, probe.facts)) };
}

/**
 * The user's own tools first, then those with problems, then those that were called: what is cut off at the end matters
 * least.
 */
function inOrder(cases: readonly Case[]): Case[] {
  const rank = ({ seen, predictions }: Case) =>
    seen?.isNamed === true ? 0 : predictions.some(({ state }) => state === "cut") ? 1 : seen === undefined ? 3 : 2;
  return cases.toSorted((a, b) => rank(a) - rank(b));
}

function toData(probe: Probe, cases: readonly Case[], seen: ReadonlyMap<string, Observation>) {
  const show = (name: string) => probe.show(name, 100);
  const shown = cases.slice(0, maxColumns);
  return {
    matrix: {
      columns: shown.map(({ tool }) => show(tool.name)),
      rows: hostsKnown.map(({ profile }, row) => ({
        name: profile.title,
        cells: shown.map(({ predictions }) => ({
          state: predictions[row]?.state ?? "unknown",
          text: predictions[row]?.text ?? "",
        })),
      })),
      named: shown.filter((one) => one.seen?.isNamed === true).map(({ tool }) => show(tool.name)),
      leftOut: cases.length - shown.length,
    },
    predictions: cases
      .slice(0, maxPredicted)
      .flatMap(({ predictions }) => predictions.map((one) => ({ ...one, tool: show(one.tool) }))),
    figures: { observed: Object.fromEntries([...seen].map(([name, one]) => [show(name), one])) },
  };
}

/**
 * One fault a tool at most, and only for a tool that was seen to be slow. A tool that wants a task is the tasks
 * suite's.
 */
function findFault(probe: Probe, { tool, seen, predictions }: Case): Fault[] {
  if (seen === undefined || !isSlow(seen)) return [];
  const cuts = predictions.filter(
    ({ state, survivesSeconds }) => state === "cut" && survivesSeconds !== null && survivesSeconds > 0,
  );
  if (cuts.length === 0) return [];
  const name = probe.show(tool.name, 80);
  return [
    {
      subject: name,
      severity: weigh(seen, cuts, predictions.length),
      title: `${name} is cut by ${cuts.length} of ${predictions.length} hosts when it takes long: ${listCuts(cuts)}`,
      remedy: remedyFor({ cuts, hosts: hostsKnown, seen, target: probe.target }),
      evidence: [describe(probe, tool.name, seen)],
    },
  ];
}

/** What a host would see of a slow tool that sends no progress: the worst that may be true of one that was not called. */
const silent: Observation = {
  isNamed: false,
  elapsedMs: Number.POSITIVE_INFINITY,
  isFinished: false,
  isFailed: false,
  progress: 0,
  silenceMs: Number.POSITIVE_INFINITY,
  givesTask: false,
};

/** One fault for a tool that says that its calls are longer than some host waits, and of which no call succeeded. */
function findUntested(probe: Probe, { tool, seen }: Case): Fault[] {
  if (seen !== undefined && (!seen.isFailed || seen.isNamed)) return [];
  const stated = findStatedDuration(tool);
  if (stated === undefined) return [];
  const assumed = { ...silent, givesTask: declaresTasks(probe.facts) && mayBeTask({ tool }) };
  const cuts = hostsKnown
    .map((host) => predict(host, { tool, seen: assumed }, probe.facts))
    .filter(
      ({ state, survivesSeconds: limit }) => state === "cut" && limit !== null && limit > 0 && limit < stated.seconds,
    );
  if (cuts.length === 0) return [];
  const name = probe.show(tool.name, 80);
  const limits = cuts.map(({ survivesSeconds }) => survivesSeconds ?? 0);
  const [first, last] = [Math.min(...limits), Math.max(...limits)];
  return [
    {
      subject: name,
      severity: "major",
      isUntested: true,
      title: `not tested: ${cuts.length} ${cuts.length === 1 ? "host" : "hosts"} would cut it after ${first === last ? "" : `${first} to `}${last} seconds; name it with \`--tool ${quoteWord(name)}\``,
      remedy: `Name it with --tool, and with --args where it takes arguments: it is then called and judged. A call that sends no progress would be cut by ${listCuts(cuts)}.`,
      evidence: [probe.received(`tools/list says of ${tool.name}: ${stated.words}`)],
    },
  ];
}

/**
 * What a third of the hosts lose, the user's own tool, and one on its way to the limit weigh more than one that is
 * merely slow.
 */
function weigh({ isNamed, elapsedMs }: Observation, cuts: readonly Prediction[], hosts: number): Severity {
  const shortest = Math.min(...cuts.map(({ survivesSeconds }) => survivesSeconds ?? Number.POSITIVE_INFINITY));
  return isNamed || cuts.length * 3 >= hosts || elapsedMs >= (shortest * 1000) / 2 ? "major" : "minor";
}

function describe(probe: Probe, name: string, { elapsedMs, isFinished, isFailed, progress, silenceMs }: Observation) {
  const took = isFailed
    ? "did not succeed"
    : isFinished
      ? `took ${Math.round(elapsedMs)} ms`
      : `was not finished after ${Math.round(elapsedMs)} ms`;
  const told =
    progress === 0
      ? "sent no progress"
      : `sent progress ${progress} times, with ${Math.round(silenceMs)} ms of silence at most`;
  return probe.measured(`${probe.show(name, 80)} ${took} and ${told}`);
}
