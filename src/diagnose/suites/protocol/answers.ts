import { messageOf } from "../../../errors.ts";
import type { Probe } from "../../asking/probe.ts";
import { explainHttp } from "../../asking/protocol/explain-http.ts";
import { explainPipe } from "../../asking/protocol/explain-pipe.ts";
import { revisionsOf } from "../../asking/protocol/raw-requests.ts";
import { type Check, type Fault, failed, passed, type Skipped, skipped } from "../../check.ts";

export const check: Check = {
  id: "protocol/answers",
  question: "Does the server answer at all?",
  severity: "blocker",
  why: "No host can use a server that takes neither initialize nor server/discover; nothing else could be checked.",
  remedy: "Start the server, or send the request, in the way that the evidence shows, and look where it ends.",
  source: "MCP 2025-11-25, Lifecycle: Initialization; MCP 2026-07-28, Discovery",
  limitMs: 30_000,
  async run(probe) {
    const { problem, movedTo, isLocked } = probe.facts;
    if (problem !== undefined && isLocked) return refused(probe);
    if (problem === undefined && movedTo !== undefined) return failed(moved(probe, movedTo));
    if (problem === undefined) return passed(`It speaks ${revisionsOf(probe.facts).join(" and ")}.`);
    const fault = await explain(probe, problem);
    return failed({ ...fault, evidence: fault.evidence.slice(0, 4) });
  },
};

/**
 * Who asks for credentials does what it should, and nothing else can be said of it; how well it asks is the question of
 * security/sign-in-hint.
 */
function refused({ target }: Probe): Skipped {
  const hasSome = target.kind === "http" && Object.keys(target.headers).length > 0;
  return skipped(
    `It wants ${hasSome ? "other credentials than those given" : "credentials"}: give --token-env NAME (or --header 'Name: value').`,
  );
}

/** Clients of the SDKs go on to it; others do not, and each request costs two. */
function moved(probe: Probe, movedTo: string): Fault {
  const path = probe.show(movedTo.replace(/\?.*$/s, ""), 200);
  return {
    severity: "minor",
    title: `The server redirects every request to another of its paths: ${path}`,
    remedy: `Answer at the path that people are given, or give them the one with ${path}: a redirect costs a request each time, and not every client follows one for POST.`,
    evidence: [probe.sent("POST with initialize"), probe.received(`a redirect (HTTP 307 or 308), Location: ${path}`)],
  };
}

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
