import type { SurveyedTool } from "../../asking/facts.ts";
import { maxFaults } from "../../asking/security/texts.ts";
import { type Check, type Fault, failed, passed, skipped } from "../../check.ts";

/** As the first word of a name these say what cannot be taken back. */
const destroys = new Set([
  "delete",
  "drop",
  "destroy",
  "purge",
  "wipe",
  "erase",
  "truncate",
  "uninstall",
  "kill",
  "terminate",
]);
/** These may do anything. */
const runs = new Set(["exec", "execute", "shell", "bash", "eval"]);

export const check: Check = {
  id: "security/unmarked-danger",
  question: "Do tools that can destroy something say so?",
  severity: "info",
  why: "Hosts ask their user before a call, or do not, by the tool's annotations. Without them some ask always, which people learn to click away, and some never.",
  remedy:
    "Give every tool annotations: destructiveHint: true for what cannot be taken back, readOnlyHint: true for what only reads.",
  source: "MCP 2025-11-25 and 2026-07-28, Tools: ToolAnnotations",
  isStatic: true,
  async run(probe) {
    const { tools } = probe.facts;
    if (tools.length === 0) return skipped("The server has no tools.");
    const faults = tools.flatMap((tool): Fault[] => {
      const word = firstWord(tool);
      const evidence = [probe.received(`annotations: ${JSON.stringify(tool.annotations)}`)];
      const subject = probe.show(tool.name, 120);
      const name = probe.show(tool.name, 80);
      // Text can be run without harm (a query that only reads); deleting can not be reading.
      if (destroys.has(word) && tool.annotations.readOnlyHint === true)
        return [
          {
            subject,
            title: `${name} says that it only reads, and its name says otherwise`,
            severity: "minor",
            evidence,
          },
        ];
      const isSilent = tool.annotations.destructiveHint === undefined && tool.annotations.readOnlyHint !== true;
      return (destroys.has(word) || runs.has(word)) && isSilent
        ? [{ subject, title: `${name} does not say whether it destroys anything`, evidence }]
        : [];
    });
    return faults.length === 0 ? passed() : failed(faults.slice(0, maxFaults));
  },
};

/** `deleteFile`, `delete_file`, `delete-file` and `delete.file` all begin with delete. */
function firstWord({ name }: SurveyedTool): string {
  return (/^[A-Z]?[a-z]+/.exec(name)?.[0] ?? "").toLowerCase();
}
