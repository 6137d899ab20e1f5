import { isObject, type Json, textOf } from "../../../wire/json.ts";
import { legacyRevision, legacyRevisions } from "../../../wire/revisions.ts";
import { noLegacy, verdictOf } from "../../asking/protocol/raw-requests.ts";
import { type Check, type Fault, skipped } from "../../check.ts";

export const check: Check = {
  id: "protocol/initialize",
  question: "Does initialize answer with a revision, capabilities and a server name that clients accept?",
  severity: "blocker",
  why: "Clients check this answer field by field. With one of them missing or of the wrong type they refuse the server before it has shown a single tool.",
  remedy:
    'Answer initialize with { "protocolVersion": "2025-11-25", "capabilities": { "tools": {} }, "serverInfo": { "name": "…", "version": "…" } }.',
  source: "MCP 2025-11-25, Lifecycle: Initialization; InitializeResult of the schema",
  isGentle: true,
  async run(probe) {
    if (probe.facts.legacy === undefined) return skipped(noLegacy);
    const { hello } = await probe.open({ revision: legacyRevision });
    const evidence = [probe.sent(`initialize with protocolVersion ${legacyRevision}`), probe.received(hello)];
    const faults = problemsOf(hello, (text) => probe.show(text, 60)).map(
      ([subject, title]): Fault => ({ subject, title, evidence }),
    );
    return verdictOf(faults, `It agrees on ${probe.facts.legacy.revision}.`);
  },
};

function problemsOf(hello: Json, show: (text: string) => string): [string, string][] {
  const { protocolVersion, serverInfo, capabilities, instructions } = hello;
  const problems: [string, string][] = [];
  if (typeof protocolVersion !== "string")
    problems.push(["protocolVersion", "The answer to initialize has no protocolVersion"]);
  else if (!legacyRevisions.includes(protocolVersion))
    problems.push([
      "protocolVersion",
      `initialize is answered with the revision "${show(protocolVersion)}", which does not exist or has no initialize`,
    ]);
  for (const field of ["name", "version"])
    if (textOf(isObject(serverInfo) ? serverInfo[field] : undefined) === undefined)
      problems.push([`serverInfo.${field}`, `The answer to initialize has no serverInfo.${field}`]);
  if (instructions !== undefined && typeof instructions !== "string")
    problems.push(["instructions", "The instructions of initialize are no text"]);
  if (!isObject(capabilities))
    return [...problems, ["capabilities", "The answer to initialize has no capabilities object"]];
  // How tasks are declared is judged as a whole by tasks/capability.
  for (const [name, value] of Object.entries(capabilities).slice(0, 50))
    if (!isObject(value) && name !== "tasks")
      problems.push([`capabilities.${show(name)}`, `The capability ${show(name)} is no object`]);
  return problems;
}
