import { isObject } from "../../../wire/json.ts";
import { isMessage, verdictOf } from "../../asking/protocol/raw-requests.ts";
import { type Check, type Fault, skipped } from "../../check.ts";

export const check: Check = {
  id: "protocol/stdout",
  question: "Is there nothing but messages on the server's standard output?",
  severity: "major",
  why: "Hosts read every line as a message. A banner or a log line is shown to the user as a broken server, and some hosts end the connection.",
  remedy:
    "Log to the standard error (console.error, logging to stderr), silence what your dependencies print, and write each message on one line.",
  source: "MCP 2025-11-25, Transports: stdio; MCP 2026-07-28, stdio",
  transport: "stdio",
  async run(probe) {
    const session = await probe.open({ capabilities: {} });
    const { pipe } = session;
    if (pipe === undefined) return skipped("It is asked of servers that are started here only.");
    if (session.capabilities.tools !== undefined) await session.request("tools/list", {});
    const [callable] = probe.callables;
    if (callable !== undefined)
      await session.request(
        "tools/call",
        { name: callable.tool.name, arguments: callable.arguments },
        { timeoutMs: Math.min(probe.requestMs, 2_000) },
      );
    const faults: Fault[] = [];
    const noise = pipe.lines.filter((line) => line.text.trim() !== "" && !isMessage(line));
    if (noise.length > 0)
      faults.push({
        title: "The server prints lines on its standard output that are no messages",
        evidence: [
          probe.measured(`${noise.length} of ${pipe.lines.length} lines`),
          ...noise.slice(0, 3).map(({ text }) => probe.printed(text)),
        ],
      });
    const asked = session.isModern
      ? pipe.lines.find(({ json }) => isObject(json) && json.method !== undefined && json.id !== undefined)
      : undefined;
    if (asked !== undefined)
      faults.push({
        subject: "requests",
        title: "The server sends requests of its own, which 2026-07-28 does not have",
        remedy: "Ask with an input_required result instead.",
        evidence: [probe.printed(asked.text)],
      });
    return verdictOf(faults);
  },
};
