import { type Check, type Fault, failed, passed, type Severity, skipped } from "../../check.ts";
import type { Tool } from "../../facts.ts";
import type { Probe } from "../../probe.ts";
import { isSlow, type Observation, observeTools } from "./observe.ts";
import { type Prediction, predict } from "./predict.ts";
import { listCuts, remedyFor } from "./remedy.ts";
import { hostsKnown } from "./settings.ts";

const maxColumns = 40;

export const check: Check = {
  id: "hosts/slow-call",
  question: "Does every tool survive in every known host when a call takes long?",
  severity: "minor",
  why: "Each host gives a call a time of its own, from 60 s on, and half of them do not care about progress. What a call that was cut would have brought never reaches the model, and the host may run it a second time.",
  remedy: "Send progress at least every 20 s, or answer within 45 s with a task or a plain handle.",
  source: "docs/hosts.md: measured with the real hosts in November 2026; rows from public threads are marked there",
  limitMs: 45_000,
  run: async (probe) => {
    const { tools } = probe.facts;
    if (tools.length === 0) return skipped("The server has no tools.");
    const seen = await observeTools(probe);
    const columns = tools.toSorted((a, b) => Number(seen.has(b.name)) - Number(seen.has(a.name))).slice(0, maxColumns);
    const predictions = columns.map((tool) => hostsKnown.map((host) => predict(host, { tool, seen: seen.get(tool.name) }, probe.facts.transport)));
    const data = {
      matrix: toMatrix(probe, columns, predictions),
      predictions: predictions.flat().map((one) => ({ ...one, tool: probe.show(one.tool, 100) })),
      figures: { observed: Object.fromEntries([...seen].map(([name, one]) => [probe.show(name, 100), one])) },
    };
    const faults = columns.flatMap((tool, at) => findFault(probe, { tool, seen: seen.get(tool.name), predictions: predictions[at] ?? [] }));
    if (faults.length > 0) return failed(faults, data);
    if (seen.size === 0) return passed("No tool was called: none says that it only reads, or no arguments are known. Name one with --tool.", { data });
    return passed("No tool that was called is slow enough to be cut.", {
      evidence: [...seen].map(([name, one]) => describe(probe, name, one)).slice(0, 4),
      data,
    });
  },
};

function toMatrix(probe: Probe, columns: readonly Tool[], predictions: readonly (readonly Prediction[])[]) {
  return {
    columns: columns.map(({ name }) => probe.show(name, 100)),
    rows: hostsKnown.map(({ profile }, row) => ({
      name: profile.title,
      cells: predictions.map((ofTool) => ({ state: ofTool[row]?.state ?? "unknown", text: ofTool[row]?.text ?? "" })),
    })),
  };
}

interface Case {
  readonly tool: Tool;
  readonly seen: Observation | undefined;
  readonly predictions: readonly Prediction[];
}

/** One fault a tool at most, and only for a tool that was seen to be slow. A tool that wants a task is the tasks suite's. */
function findFault(probe: Probe, { tool, seen, predictions }: Case): Fault[] {
  if (seen === undefined || !isSlow(seen)) return [];
  const cuts = predictions.filter(({ state, survivesSeconds }) => state === "cut" && survivesSeconds !== null && survivesSeconds > 0);
  if (cuts.length === 0) return [];
  const name = probe.show(tool.name, 80);
  return [
    {
      subject: name,
      severity: weigh(seen, cuts),
      title: `${name} is cut by ${cuts.length} of ${predictions.length} hosts when it takes long: ${listCuts(cuts)}`,
      remedy: remedyFor({ cuts, hosts: hostsKnown, seen, target: probe.target }),
      evidence: [describe(probe, tool.name, seen)],
    },
  ];
}

/** The user's own tool, or one on its way to the limit, is worth more than one that is merely slow. */
function weigh({ isNamed, elapsedMs }: Observation, cuts: readonly Prediction[]): Severity {
  const shortest = Math.min(...cuts.map(({ survivesSeconds }) => survivesSeconds ?? Number.POSITIVE_INFINITY));
  return isNamed || elapsedMs >= (shortest * 1000) / 2 ? "major" : "minor";
}

function describe(probe: Probe, name: string, { elapsedMs, isFinished, isFailed, progress, silenceMs }: Observation) {
  const took = isFailed ? "did not succeed" : isFinished ? `took ${Math.round(elapsedMs)} ms` : `was not finished after ${Math.round(elapsedMs)} ms`;
  const told = progress === 0 ? "sent no progress" : `sent progress ${progress} times, with ${Math.round(silenceMs)} ms of silence at most`;
  return probe.measured(`${probe.show(name, 80)} ${took} and ${told}`);
}
