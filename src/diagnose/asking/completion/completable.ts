import { fieldsOf, isObject, type Json, listOf, textOf } from "../../../wire/json.ts";
import { hasCompletionsCapability } from "../../../wire/revisions.ts";
import { type Evidence, skipped, type Verdict } from "../../check.ts";
import type { ProbeAnswer, ProbeSession } from "../../wire/probe-session.ts";
import type { Facts } from "../facts.ts";
import type { Probe } from "../probe.ts";

/** Something that can be completed: an argument of a prompt, or a variable of a resource template. */
export interface Completable {
  readonly ref: Json;
  readonly argument: string;
}

const maxAsked = 5;

const undeclared = "The server does not declare completions.";
export const nothingToComplete =
  "The server declares completions, but has no prompt with an argument and no resource template to complete.";

/** Of the newest revision that the server speaks. Before 2025-03-26 there was no capability to declare. */
export function declaresCompletions({ modern, legacy }: Pick<Facts, "modern" | "legacy">): boolean {
  const spoken = modern ?? legacy;
  return spoken?.capabilities.completions !== undefined || !hasCompletionsCapability(spoken?.revision ?? "");
}

/** Asks where completions are declared; skipped elsewhere. */
export async function askCompletions(
  probe: Probe,
  judge: (session: ProbeSession, completables: readonly Completable[]) => Promise<Verdict>,
): Promise<Verdict> {
  if (!declaresCompletions(probe.facts)) return skipped(undeclared);
  const session = await probe.open();
  return await judge(session, await findCompletables(session));
}

/** At most five, prompts first. */
export async function findCompletables(session: ProbeSession): Promise<readonly Completable[]> {
  const look = async (capability: string, method: string, field: string) =>
    session.capabilities[capability] === undefined
      ? []
      : (await session.list(method, field, { maxItems: 50, maxPages: 5 })).items;
  const [prompts, templates] = await Promise.all([
    look("prompts", "prompts/list", "prompts"),
    look("resources", "resources/templates/list", "resourceTemplates"),
  ]);
  return [...prompts.flatMap(ofPrompt), ...templates.flatMap(ofTemplate)].slice(0, maxAsked);
}

function ofPrompt({ name, arguments: list }: Json): Completable[] {
  return listOf(list).flatMap((item) => {
    const argument = textOf(fieldsOf(item).name);
    return argument === undefined || textOf(name) === undefined
      ? []
      : [{ ref: { type: "ref/prompt", name }, argument }];
  });
}

/** RFC 6570: `{path}`, `{+path}`, `{?a,b*}`. */
function ofTemplate({ uriTemplate }: Json): Completable[] {
  const uri = textOf(uriTemplate) ?? "";
  const names = [...uri.matchAll(/\{[+#./;?&]?([\w.,*:%-]{1,200})\}/g)].flatMap(([, list = ""]) => list.split(","));
  return names.map((name) => ({ ref: { type: "ref/resource", uri }, argument: name.replace(/\*$|:\d+$/, "") }));
}

/** What was sent to complete a value. */
export function sentFor(probe: Probe, completable: Completable, value: string): Evidence {
  return probe.sent({ method: "completion/complete", params: toParams(completable, value) });
}

function toParams({ ref, argument }: Completable, value: string): Json {
  return { ref, argument: { name: argument, value } };
}

export function complete(
  session: ProbeSession,
  completable: Completable,
  value: string,
  timeoutMs?: number,
): Promise<ProbeAnswer> {
  return session.request(
    "completion/complete",
    toParams(completable, value),
    timeoutMs === undefined ? {} : { timeoutMs },
  );
}

/** The suggestions, when they came as a list. */
export function valuesOf({ result }: ProbeAnswer): readonly unknown[] | undefined {
  const completion = result?.completion;
  return isObject(completion) && Array.isArray(completion.values) ? completion.values : undefined;
}
