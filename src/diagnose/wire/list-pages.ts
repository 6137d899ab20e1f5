import { systemClock } from "../../clock.ts";
import { isObject, type Json, textOf } from "../../wire/json.ts";
import type { Listed, ListOptions, ProbeAnswer, ProbeSession } from "./probe-session.ts";

const maxBytes = 4 * 1024 * 1024;
const maxValues = 200_000;

interface ListRequest extends ListOptions {
  readonly method: string;
  readonly field: string;
}

/** Every page of a list, up to a limit of each kind; `requestMs` is what one page may take. */
export async function listPages(
  session: Pick<ProbeSession, "request">,
  requestMs: number,
  { method, field, maxItems = 1_000, maxPages = 50, timeoutMs = requestMs * 3 }: ListRequest,
): Promise<Listed> {
  const items: Json[] = [];
  const answers: ProbeAnswer[] = [];
  const seen = new Set<string>();
  const endsAt = systemClock.monotonic() + timeoutMs;
  let cursor: string | undefined;
  let size = { bytes: 0, values: 0 };
  const end = (problem?: string): Listed => ({
    items,
    pages: answers.length,
    answers,
    ...(problem !== undefined && { problem }),
  });
  for (;;) {
    const leftMs = Math.min(requestMs, endsAt - systemClock.monotonic());
    const answer = await session.request(method, cursor === undefined ? {} : { cursor }, { timeoutMs: leftMs });
    answers.push(answer);
    if (answer.result === undefined) return end(answer.problem ?? `${method} was answered with an error`);
    const page = answer.result[field];
    if (!Array.isArray(page)) return end(`${method} gave no list called ${field}`);
    items.push(...page.slice(0, maxItems - items.length).filter(isObject));
    cursor = textOf(answer.result.nextCursor);
    if (cursor === undefined || cursor === "") return end();
    if (items.length >= maxItems) return end(`there are more than ${maxItems}`);
    if (seen.has(cursor)) return end("the same cursor came twice");
    if (answers.length >= maxPages) return end(`there are more than ${maxPages} pages`);
    size = { bytes: size.bytes + (answer.http?.bytes ?? 0), values: size.values + (answer.http?.values ?? 0) };
    if (size.bytes > maxBytes || size.values > maxValues) return end("the pages are larger than anybody reads");
    if (systemClock.monotonic() >= endsAt) return end(`its pages took more than ${Math.round(timeoutMs)} ms`);
    seen.add(cursor);
  }
}
