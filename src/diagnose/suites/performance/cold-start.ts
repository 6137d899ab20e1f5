import { type Check, failed, passed, type Severity, skipped } from "../../check.ts";

const slowMs = 5_000;
const lostMs = 30_000;

export const check: Check = {
  id: "performance/cold-start",
  question: "Does the server answer soon after it is started?",
  severity: "minor",
  why: "Hosts start a server anew for each session and give up on one that stays silent: Codex CLI after 10 s unless startup_timeout_sec says otherwise, Claude Code after what MCP_TIMEOUT says, 60 s at most. Its tools are then missing without a word.",
  remedy:
    "Answer the handshake first and load, connect and download afterwards; ship one bundled file rather than `npx` of many packages.",
  source: "Codex CLI's own message (openai/codex#11851); anthropics/claude-code#16837",
  transport: "stdio",
  limitMs: 45_000,
  run: async (probe) => {
    const startedAt = probe.clock.monotonic();
    const { answer } = await probe.greet({ timeoutMs: 40_000 });
    if (answer.message === undefined) return skipped("The server was started once more and did not answer this time.");
    // The quickest of all starts: the first may have unpacked something, and this machine may be busy.
    const { legacy, modern } = probe.facts;
    const startMs = Math.round(
      Math.min(probe.clock.monotonic() - startedAt, legacy?.startMs ?? Infinity, modern?.startMs ?? Infinity),
    );
    const evidence = [probe.measured(`${startMs} ms from its start to its first answer`)];
    const severity = weighStart(startMs);
    const figures = { startMs };
    if (severity === undefined) return passed(undefined, { evidence, data: { figures } });
    return failed(
      {
        severity,
        title: `The server needs more than ${severity === "major" ? 30 : 5} s before it answers for the first time`,
        evidence,
      },
      { figures },
    );
  },
};

/** How bad a start of this length is; undefined: it is not. */
export function weighStart(startMs: number): Severity | undefined {
  if (startMs > lostMs) return "major";
  return startMs > slowMs ? "minor" : undefined;
}
