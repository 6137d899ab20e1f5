import { legacyRevision, modernRevision, taskGenerations, tasksExtension } from "../../../wire/revisions.ts";
import { likelySlowFirst } from "../../asking/likely-slow.ts";
import type { Probe } from "../../asking/probe.ts";
import { declares, noTasks } from "../../asking/tasks/task-generation.ts";
import { type Check, type Fault, failed, passed, skipped } from "../../check.ts";

const maxNamed = 20;
/** A call that takes longer is under way, and so not refused. */
const refusalMs = 400;

export const check: Check = {
  id: "tasks/required",
  question: "Can a client without tasks call every tool?",
  severity: "major",
  why: "Most hosts have no tasks. To them a tool that runs only as a task is a tool that always fails: Copilot CLI cannot call it, and the SDKs' callTool refuses it before anything is sent.",
  remedy:
    'Say `taskSupport: "optional"` and answer a plain call too: with the result while it is quick, otherwise with a job id and a second tool that fetches the result.',
  source:
    "MCP 2025-11-25, Tasks, Tool-Level Negotiation; SEP-2663, Capability Negotiation; measured hosts; github/copilot-cli #2538.",
  async run(probe) {
    if (!taskGenerations.some((generation) => declares(probe.facts, generation))) return skipped(noTasks);
    const required = declares(probe.facts, legacyRevision)
      ? probe.facts.tools.filter(({ taskSupport }) => taskSupport === "required")
      : [];
    const faults = required.slice(0, maxNamed).map(({ name }): Fault => {
      const shown = probe.show(name, 80);
      return {
        subject: shown,
        title: `${shown} can be called only as a task`,
        evidence: [probe.received({ name, execution: { taskSupport: "required" } })],
      };
    });
    const refused = declares(probe.facts, modernRevision)
      ? await findRefused(probe, new Set(required.map(({ name }) => name)))
      : undefined;
    const all = refused === undefined ? faults : [...faults, refused];
    return all.length === 0 ? passed() : failed(all);
  },
};

/**
 * A tool that a client of 2026-07-28 without the extension is refused. One is tried: servers decide this in one place.
 */
async function findRefused(probe: Probe, known: ReadonlySet<string>): Promise<Fault | undefined> {
  const [first] = likelySlowFirst(probe.callables).filter(({ tool }) => !known.has(tool.name));
  if (first === undefined) return undefined;
  const session = await probe.open({ revision: modernRevision, capabilities: { elicitation: {} } });
  const { id, answer: coming } = session.start(
    "tools/call",
    { name: first.tool.name, arguments: first.arguments },
    { timeoutMs: refusalMs },
  );
  const answer = await coming;
  if (answer.message === undefined) await session.notify("notifications/cancelled", { requestId: id });
  if (answer.error?.code !== -32021) return undefined;
  const shown = probe.show(first.tool.name, 80);
  return {
    subject: shown,
    title: `${shown} can be called only as a task`,
    evidence: [
      probe.sent(`tools/call without the capability ${tasksExtension}`),
      probe.received({ error: answer.error }),
    ],
  };
}
