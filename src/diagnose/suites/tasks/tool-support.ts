import { fieldsOf } from "../../../wire/json.ts";
import { legacyRevision } from "../../../wire/revisions.ts";
import type { Facts, SurveyedTool } from "../../asking/facts.ts";
import type { Probe } from "../../asking/probe.ts";
import { declares } from "../../asking/tasks/task-generation.ts";
import { type Check, type Fault, failed, passed, skipped } from "../../check.ts";
import { legacyFault } from "./capability.ts";

const values: readonly unknown[] = ["required", "optional", "forbidden"];

export const check: Check = {
  id: "tasks/tool-support",
  question: "Do the tools and the capability agree about tasks?",
  severity: "major",
  why: "In 2025-11-25 a tool is called as a task only when the server declares the capability and the tool says `execution.taskSupport`. With one of the two the code for tasks is never reached; with an unknown value the SDKs' clients refuse the whole list of tools.",
  remedy:
    'Declare `tasks.requests.tools.call` in the capabilities, and give each slow tool `execution: { taskSupport: "optional" }`; leave both out when tools do not run as tasks.',
  source:
    "MCP 2025-11-25, Tasks, Tool-Level Negotiation. Tried with the clients of the TypeScript SDKs 1.32 and 2.4; bernstein #3079.",
  isStatic: true,
  async run(probe) {
    const { facts } = probe;
    if (facts.legacy === undefined) return skipped("The server does not speak 2025-11-25.");
    const odd = facts.tools.find((tool) => supportOf(tool) !== undefined && !values.includes(supportOf(tool)));
    if (odd !== undefined)
      return failed({
        subject: legacyRevision,
        title: "A tool's execution.taskSupport is none of required, optional and forbidden",
        severity: "blocker",
        evidence: [
          probe.received({ name: odd.name, execution: odd.json.execution ?? { taskSupport: odd.taskSupport } }),
        ],
      });
    const fault = disagreement(facts, probe);
    if (fault !== undefined) return failed(fault);
    return declares(facts, legacyRevision)
      ? passed()
      : skipped("Neither the server nor any tool speaks of the tasks of 2025-11-25.");
  },
};

function supportOf({ json, taskSupport }: SurveyedTool): unknown {
  return fieldsOf(json.execution).taskSupport ?? taskSupport;
}

function disagreement(facts: Facts, probe: Pick<Probe, "received">): Fault | undefined {
  const able = facts.tools.filter(({ taskSupport }) => taskSupport === "optional" || taskSupport === "required");
  const tasks = facts.legacy?.capabilities.tasks;
  if (declares(facts, legacyRevision)) {
    if (able.length > 0 || facts.tools.length === 0 || facts.toolsProblem !== undefined) return undefined;
    return {
      subject: legacyRevision,
      title: "The server declares tasks, but no tool says that it can run as one",
      severity: "minor",
      evidence: [probe.received({ capabilities: { tasks } })],
    };
  }
  // What is wrong with the declaration itself is said once, by tasks/capability.
  if (able.length === 0 || legacyFault(facts, probe) !== undefined) return undefined;
  return {
    subject: legacyRevision,
    title: "Tools say that they can run as tasks, but the server does not declare tasks",
    evidence: [
      probe.received({ capabilities: { tasks } }),
      probe.received(able.slice(0, 5).map(({ name, taskSupport }) => ({ name, execution: { taskSupport } }))),
    ],
  };
}
