import { fieldsOf, isObject, type Json } from "../../../wire/json.ts";
import { legacyRevision, tasksExtension } from "../../../wire/revisions.ts";
import type { Facts } from "../../asking/facts.ts";
import type { Probe } from "../../asking/probe.ts";
import { noTasks } from "../../asking/tasks/task-generation.ts";
import { type Check, type Fault, failed, passed, skipped } from "../../check.ts";

export const check: Check = {
  id: "tasks/capability",
  question: "Are tasks declared in the shape that clients look for?",
  severity: "major",
  why: "Clients look for one exact field. When it is missing they never make a task and say nothing; when a part of it is not an object, the SDKs' clients refuse to connect at all.",
  remedy:
    'Declare exactly `"tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}` in the capabilities of 2025-11-25, and `"extensions": {"io.modelcontextprotocol/tasks": {}}` in those of 2026-07-28.',
  source:
    "MCP 2025-11-25, Tasks, Capabilities; SEP-2663, Capability Negotiation. Tried with the clients of the TypeScript SDKs 1.32 and 2.4; the slip of python-sdk #1853.",
  isStatic: true,
  async run(probe) {
    const faults = [legacyFault(probe.facts, probe), modernFault(probe.facts, probe)].flatMap((fault) => fault ?? []);
    if (faults.length > 0) return failed(faults);
    const { legacy, modern } = probe.facts;
    const isDeclared =
      legacy?.capabilities.tasks !== undefined ||
      fieldsOf(modern?.capabilities.extensions)[tasksExtension] !== undefined;
    return isDeclared ? passed() : skipped(noTasks);
  },
};

/** From the root to what lets tools be called as tasks; whatever is there must be an object. */
const paths = [
  ["tasks"],
  ["tasks", "list"],
  ["tasks", "cancel"],
  ["tasks", "requests"],
  ["tasks", "requests", "tools"],
  ["tasks", "requests", "tools", "call"],
];

/** Where people have put it instead. */
const lookalikes = [
  ["tools", "taskRequests"],
  ["tools", "tasks"],
  ["tools", "taskSupport"],
  ["task"],
  ["tasks", "tools"],
  ["tasks", "requests", "tools/call"],
];

/** What is wrong with how the tasks of 2025-11-25 are declared. */
export function legacyFault({ legacy, tools }: Facts, probe: Pick<Probe, "received">): Fault | undefined {
  if (legacy === undefined) return undefined;
  const { capabilities, revision } = legacy;
  const evidence = [
    probe.received({ capabilities: { tools: capabilities.tools, task: capabilities.task, tasks: capabilities.tasks } }),
  ];
  const wrong = paths.find((path) => at(capabilities, path) !== undefined && !isObject(at(capabilities, path)));
  if (wrong !== undefined)
    return {
      subject: legacyRevision,
      title: `capabilities.${wrong.join(".")} is ${kindOf(at(capabilities, wrong))} where clients expect an object`,
      severity: "blocker",
      evidence,
    };
  if (isObject(at(capabilities, ["tasks", "requests", "tools", "call"]))) {
    if (revision === legacyRevision) return undefined;
    return {
      subject: legacyRevision,
      title: `Tasks are declared, but the server agrees on ${probe.received(revision).text}, which has none`,
      severity: "minor",
      remedy: "Answer initialize with 2025-11-25 when the client asks for it.",
      evidence,
    };
  }
  const like = lookalikes.find((path) => at(capabilities, path) !== undefined);
  if (like !== undefined)
    return {
      subject: legacyRevision,
      title: `Tasks are declared as capabilities.${like.join(".")}, which no client looks at`,
      evidence,
    };
  if (capabilities.tasks === undefined) return undefined;
  const isMeant = tools.some(({ taskSupport }) => taskSupport === "optional" || taskSupport === "required");
  return {
    subject: legacyRevision,
    title: "capabilities.tasks is declared without requests.tools.call, so that no client calls a tool as a task",
    severity: isMeant || at(capabilities, ["tasks", "requests"]) !== undefined ? "major" : "minor",
    evidence,
  };
}

function modernFault({ modern }: Facts, probe: Pick<Probe, "received" | "show">): Fault | undefined {
  if (modern === undefined) return undefined;
  const { extensions, tasks } = modern.capabilities;
  const evidence = [probe.received({ capabilities: { extensions, tasks } })];
  const fault = (title: string, more: Partial<Fault> = {}): Fault => ({
    subject: modern.revision,
    title,
    evidence,
    ...more,
  });
  if (extensions !== undefined && !isObject(extensions))
    return fault(`capabilities.extensions is ${kindOf(extensions)} where clients expect an object`, {
      severity: "blocker",
    });
  const own = fieldsOf(extensions)[tasksExtension];
  if (own !== undefined && !isObject(own))
    return fault(`The extension ${tasksExtension} is declared as ${kindOf(own)} where clients expect {}`, {
      severity: "blocker",
    });
  if (isObject(own)) {
    if (Object.keys(own).length === 0) return undefined;
    return fault(
      `The extension ${tasksExtension} is declared with settings, where clients expect {} and otherwise ignore it`,
    );
  }
  const misspelt = Object.keys(fieldsOf(extensions)).find(
    (key) => /^tasks?$/i.test(key) || (/modelcontextprotocol/i.test(key) && /tasks?/i.test(key)),
  );
  if (misspelt !== undefined)
    return fault(`The extension is declared as ${probe.show(misspelt, 80)}; its name is ${tasksExtension}`);
  if (tasks === undefined) return undefined;
  return fault(
    "server/discover declares the tasks of 2025-11-25, which mean nothing in 2026-07-28, and not the extension",
  );
}

function at(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (inner, field) => (isObject(inner) && Object.hasOwn(inner, field) ? (inner as Json)[field] : undefined),
    value,
  );
}

function kindOf(value: unknown): string {
  if (Array.isArray(value)) return "a list";
  return value === null || typeof value === "boolean" ? String(value) : `a ${typeof value}`;
}
