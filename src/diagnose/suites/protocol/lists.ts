import { type Json, textOf } from "../../../wire/json.ts";
import type { Probe } from "../../asking/probe.ts";
import { type ListMethod, listsOf } from "../../asking/protocol/lists-of.ts";
import { cameBack, errorOf, verdictOf } from "../../asking/protocol/raw-requests.ts";
import { type Check, type Fault, skipped } from "../../check.ts";
import type { Listed, ProbeSession } from "../../wire/probe-session.ts";

export const check: Check = {
  id: "protocol/lists",
  question: "Can every list that the server declares be read to its end, with each item once?",
  severity: "major",
  why: "Hosts read these lists when they connect. A list that fails, never ends or is too large leaves the user without tools; models refuse two tools of one name.",
  remedy:
    "Answer every list that you declare; give nextCursor only while there is more, and each item once. Refuse cursors that you did not give out with error −32602.",
  source: "MCP 2025-11-25 and 2026-07-28, Pagination; Tools: Capabilities",
  limitMs: 20_000,
  isGentle: true,
  async run(probe) {
    const session = await probe.open();
    const lists = listsOf(session.capabilities);
    if (lists.length === 0) return skipped("The server declares neither tools nor prompts nor resources.");
    const faults: Fault[] = [];
    const counts: string[] = [];
    for (const list of lists) {
      const listed = await session.list(list.method, list.field, { timeoutMs: probe.requestMs });
      const fault =
        endFault(probe, list, listed) ??
        itemFault(probe, list, listed) ??
        (await cursorFault(probe, session, list, listed));
      if (fault !== undefined) faults.push({ subject: list.method, ...fault });
      counts.push(`${list.method}: ${listed.items.length}`);
      // Who stays silent, or was stopped because it printed without end, is not asked for more.
      if (session.pipe?.isEnded === true || fault?.title.endsWith("is not answered") === true) break;
    }
    return verdictOf(faults, `${counts.join(", ")}.`);
  },
};

/** A list that cannot be read to its end. */
function endFault(probe: Probe, { method, isOptional }: ListMethod, listed: Listed): Fault | undefined {
  const last = listed.answers.at(-1);
  if (listed.problem === undefined || last === undefined) return undefined;
  const evidence = [probe.sent(`${method}, page ${listed.pages}`), cameBack(probe, last)];
  if (last.http?.ended === "too-large" || /printed|larger than anybody reads/.test(listed.problem))
    return {
      title: `The answer to ${method} is too large`,
      evidence: [probe.measured(`Stopped reading: ${listed.problem}.`)],
    };
  if (listed.problem === "the same cursor came twice")
    return { title: `${method} never ends: it gives a cursor again that it gave before`, evidence };
  if (last.message === undefined) return { title: `${method} is not answered`, evidence };
  if (last.result === undefined && listed.pages > 1)
    return { title: `${method} refuses a cursor of its own`, evidence };
  if (last.result === undefined)
    return isOptional && errorOf(last.message)?.code === -32601
      ? undefined
      : { title: `${method} is declared, but fails`, evidence };
  if (listed.problem.includes("gave no list")) return { title: `The result of ${method} has no list`, evidence };
  const isEmpty = listed.items.length === 0;
  return isEmpty ? { title: `${method} never ends: page follows page, and all are empty`, evidence } : undefined;
}

/** Items that clients cannot tell apart, or not read at all. */
function itemFault(probe: Probe, { method, key }: ListMethod, { items }: Listed): Fault | undefined {
  const seen = new Set<string>();
  const again: string[] = [];
  let broken: Json | undefined;
  for (const item of items) {
    const name = textOf(item[key]);
    if (name === undefined || (key !== "name" && textOf(item.name) === undefined)) broken ??= item;
    else if (seen.has(name)) again.push(name);
    else seen.add(name);
  }
  if (broken !== undefined)
    return {
      title: `${method} has items without ${key === "name" ? "a name" : `name or ${key}`}`,
      severity: "blocker",
      evidence: [probe.received(broken)],
    };
  if (again.length === 0) return undefined;
  const shown = [...new Set(again)].slice(0, 5).map((name) => probe.show(name, 60));
  return {
    title: `${method} has items twice`,
    severity: key === "name" ? "major" : "minor",
    evidence: [probe.received(`twice: ${shown.join(", ")}`)],
  };
}

/** Only lists of several pages have cursors to get wrong. */
async function cursorFault(
  probe: Probe,
  session: ProbeSession,
  { method }: ListMethod,
  { pages }: Listed,
): Promise<Fault | undefined> {
  if (pages < 2) return undefined;
  const answer = await session.request(method, { cursor: "meanwhile-no-such-cursor" });
  const code = errorOf(answer.message)?.code;
  if (code === -32602) return undefined;
  const evidence = [probe.sent({ method, params: { cursor: "meanwhile-no-such-cursor" } }), cameBack(probe, answer)];
  const how =
    answer.message === undefined
      ? "not answered"
      : code === undefined
        ? "accepted"
        : "refused with another error than −32602";
  return { title: `A cursor that ${method} never gave out is ${how}`, severity: "minor", evidence };
}
