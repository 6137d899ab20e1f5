import type { Json } from "../../../wire/json.ts";
import { type Check, failed, passed, skipped } from "../../check.ts";

export const check: Check = {
  id: "protocol/stable-tools",
  question: "Are the tools the same, and in the same order, when they are listed again?",
  severity: "major",
  why: "Hosts list tools once and keep them. A list that changes without notice offers tools that are gone, shows others than the user approved, and spoils the cache of every prompt.",
  remedy:
    "List the same tools with the same definitions in the same order until they change, and send notifications/tools/list_changed when they do.",
  source: "MCP 2026-07-28, Tools: Capabilities; MCP 2025-11-25, Tools: List Changed Notification",
  isGentle: true,
  async run(probe) {
    const session = await probe.open();
    if (session.capabilities.tools === undefined) return skipped("The server declares no tools.");
    const first = await session.list("tools/list", "tools", { timeoutMs: probe.requestMs });
    const second =
      first.problem === undefined ? await session.list("tools/list", "tools", { timeoutMs: probe.requestMs }) : first;
    if (second.problem !== undefined) return skipped("The tools could not be listed to their end.");
    if (session.heard.some(({ message }) => message.method === "notifications/tools/list_changed"))
      return passed("It announced a change in between.");
    // Only 2026-07-28 forbids that connections differ; the survey had one of its own.
    const before = session.isModern ? probe.facts.tools.map(({ json }) => json) : first.items;
    for (const [one, other] of [
      [first.items, second.items],
      [before, second.items],
    ] as const) {
      const evidence = [probe.received(names(one)), probe.received(names(other))];
      if (names([...one].sort(byName)) !== names([...other].sort(byName)))
        return failed({ title: "The tools change from one tools/list to the next", evidence });
      if (names(one) !== names(other))
        return failed({
          title: "The order of the tools changes from one tools/list to the next",
          severity: "minor",
          evidence,
        });
    }
    const changed = first.items.filter((tool, index) => JSON.stringify(tool) !== JSON.stringify(second.items[index]));
    if (changed.length === 0) return passed();
    return failed({
      title: "Definitions of tools change from one tools/list to the next",
      evidence: [probe.received(`changed: ${names(changed)}`)],
    });
  },
};

function names(tools: readonly Json[]): string {
  return tools.map(({ name }) => String(name)).join(", ");
}

function byName(one: Json, other: Json): number {
  return String(one.name) < String(other.name) ? -1 : 1;
}
