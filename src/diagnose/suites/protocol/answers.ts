import { messageOf } from "../../../errors.ts";
import { type Check, type Fault, failed, passed } from "../../check.ts";
import type { Probe } from "../../probe.ts";
import { explainHttp } from "./answers-http.ts";
import { explainPipe } from "./answers-pipe.ts";
import { revisionsOf } from "./exchange.ts";

export const check: Check = {
  id: "protocol/answers",
  question: "Does the server answer at all?",
  severity: "blocker",
  why: "No host can use a server that takes neither initialize nor server/discover; nothing else could be checked.",
  remedy: "Start the server, or send the request, in the way that the evidence shows, and look where it ends.",
  source: "MCP 2025-11-25, Lifecycle: Initialization; MCP 2026-07-28, Discovery",
  limitMs: 30_000,
  async run(probe) {
    if (probe.facts.problem === undefined) return passed(`It speaks ${revisionsOf(probe.facts).join(" and ")}.`);
    const fault = await explain(probe, probe.facts.problem);
    return failed({ ...fault, evidence: fault.evidence.slice(0, 4) });
  },
};

async function explain(probe: Probe, problem: string): Promise<Fault> {
  try {
    return probe.target.kind === "http" ? await explainHttp(probe, problem) : await explainPipe(probe, problem);
  } catch (error) {
    // The address is refused, or there is no such command: nobody was spoken to.
    return {
      title: probe.target.kind === "http" ? "The address may not be spoken to" : "The server cannot be started",
      remedy:
        probe.target.kind === "http"
          ? "Allow private addresses if you mean this one."
          : "Give the command as you would type it, and check that it can be found.",
      evidence: [probe.measured(probe.show(messageOf(error)))],
    };
  }
}
