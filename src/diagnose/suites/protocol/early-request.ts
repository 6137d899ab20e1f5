import type { Json } from "../../../wire/json.ts";
import { routingHeaders, toEnvelope } from "../../../wire/request-envelope.ts";
import { legacyRevision, modernRevision } from "../../../wire/revisions.ts";
import type { Probe } from "../../asking/probe.ts";
import { cameBack, firstWords, initialize, noLegacy } from "../../asking/protocol/raw-requests.ts";
import { type Check, type Fault, failed, passed, skipped } from "../../check.ts";
import type { RawAnswer } from "../../wire/carriers.ts";

const discover: Json = {
  jsonrpc: "2.0",
  id: "probe",
  method: "server/discover",
  params: { _meta: toEnvelope({ name: "meanwhile-diagnose", version: "1" }, {}) },
};
const list: Json = { jsonrpc: "2.0", id: "probe", method: "tools/list", params: {} };

export const check: Check = {
  id: "protocol/early-request",
  question: "Does the server stay usable when a client asks something before initialize, or initializes twice?",
  severity: "major",
  why: "Clients of 2026-07-28, Claude Code and Copilot CLI among them, first ask server/discover. A server that fails or stays silent then is given up, or costs the client its whole time limit at every start; one that leaves has to be started twice.",
  remedy: "Answer every request that you do not know with error −32601, also before initialize, and keep running.",
  source: "MCP 2026-07-28, stdio: Backward Compatibility; Streamable HTTP: Backward Compatibility",
  limitMs: 25_000,
  async run(probe) {
    const { legacy, modern } = probe.facts;
    if (legacy === undefined) return skipped(noLegacy);
    const send = await firstWords(probe);
    const early = modern === undefined ? discover : list;
    const headers = modern === undefined ? routingHeaders(modernRevision, "server/discover") : undefined;
    const first = await send(early, {
      timeoutMs: Math.min(probe.requestMs, 2_000) + legacy.startMs,
      ...(headers && { headers }),
    });
    const asked = String(early.method);
    const trouble = troubleOf(first, modern === undefined);
    const evidence = [probe.sent(`${asked}, before initialize`), cameBack(probe, first)];
    // Clients start a server that has left once more; for one that stays silent they wait.
    if (trouble !== undefined)
      return failed({
        title: `${asked} before initialize ${trouble}`,
        severity: trouble === "ends the server" ? "minor" : "major",
        evidence,
      });
    const hello = await send(initialize(legacyRevision));
    if (hello.message?.result === undefined)
      return failed({
        title: `After ${asked} the server does not take initialize any more`,
        evidence: [...evidence, cameBack(probe, hello)],
      });
    return (await again(probe, send, hello)) ?? passed();
  },
};

/** Only a server without 2026-07-28 must answer at once: elsewhere nobody waits for this answer. */
function troubleOf({ message, problem, http }: RawAnswer, isProbe: boolean): string | undefined {
  if (problem?.includes("left") === true) return "ends the server";
  if (http !== undefined && http.status >= 500) return `is answered with HTTP status ${http.status}`;
  const hasAnswer = message !== undefined || (http !== undefined && http.status >= 400);
  return isProbe && !hasAnswer ? "is not answered" : undefined;
}

async function again(probe: Probe, send: Awaited<ReturnType<typeof firstWords>>, hello: RawAnswer) {
  const id = hello.http?.headers["mcp-session-id"];
  const headers: Record<string, string> = id === undefined ? {} : { "mcp-session-id": id };
  const second = await send(initialize(legacyRevision, "again"), {
    headers,
    timeoutMs: Math.min(probe.requestMs, 2_000),
  });
  const alive = await send({ jsonrpc: "2.0", id: "alive", method: "ping" }, { headers });
  const isLost = second.http !== undefined && second.http.status >= 500;
  if (!isLost && alive.message !== undefined) return undefined;
  const fault: Fault = {
    subject: "twice",
    severity: "minor",
    title: "A second initialize makes the server unusable",
    remedy: "Answer a second initialize with the same result or with an error, and keep the connection as it is.",
    evidence: [
      probe.sent("initialize, a second time"),
      cameBack(probe, second),
      probe.sent("ping"),
      cameBack(probe, alive),
    ],
  };
  return failed(fault);
}
