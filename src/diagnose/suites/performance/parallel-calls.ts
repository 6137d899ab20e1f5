import { fieldsOf, type Json, listOf } from "../../../wire/json.ts";
import type { Callable } from "../../asking/callables.ts";
import { callTool, findQuickTool, isGood, noQuickTool, type QuickTool } from "../../asking/performance/quick-tool.ts";
import type { Probe } from "../../asking/probe.ts";
import { type Check, type Fault, failed, passed, skipped } from "../../check.ts";
import type { ProbeAnswer, ProbeSession } from "../../wire/probe-session.ts";

const parallel = 32;
const starvedMs = 2_000;

export const check: Check = {
  id: "performance/parallel-calls",
  question: "Are 32 calls at the same time all answered, each with its own result?",
  severity: "major",
  why: "Agents call tools in parallel, and a shared server has many users: a call that is lost costs its host's whole time limit, a swapped one gives a user somebody else's data.",
  remedy:
    "Keep what belongs to a call in that call (its id, its arguments, its result), never in a variable that all calls share; answer every request, also when busy.",
  source: "JSON-RPC 2.0: the id of an answer is that of its request; MCP: requests may be in flight at the same time",
  limitMs: 45_000,
  run: async (probe) => {
    const session = await probe.open({ capabilities: {} });
    const quick = await findQuickTool(probe, session, (callable) => variantsOf(callable).length > 1);
    if (quick === undefined) return skipped(noQuickTool);
    let rush = await hurry(session, quick);
    // Once more before anything is said about time: this machine may have been busy.
    if (isStarved(rush)) rush = await hurry(session, quick);
    const figures = {
      calls: parallel,
      allMs: Math.round(rush.allMs),
      listMs: Math.round(rush.list.elapsedMs),
      alone: Math.round(quick.elapsedMs),
    };
    const fault = findFault(probe, rush);
    const measured = probe.measured(
      `${parallel} calls of ${probe.show(quick.callable.tool.name, 60)} took ${figures.allMs} ms together`,
    );
    if (fault === undefined) return passed(undefined, { evidence: [measured], data: { figures } });
    return failed({ ...fault, evidence: [...fault.evidence, measured] }, { figures });
  },
};

/** What came of 32 calls at once. */
interface Rush {
  readonly answers: readonly { readonly answer: ProbeAnswer; readonly variant: number }[];
  /** What each kind of call brings when it is alone; fewer than two when they cannot be told apart. */
  readonly usual: readonly string[];
  readonly list: ProbeAnswer;
  readonly listAloneMs: number;
  readonly allMs: number;
}

async function hurry(session: ProbeSession, { callable, elapsedMs }: QuickTool): Promise<Rush> {
  const variants = variantsOf(callable);
  const timeoutMs = Math.min(Math.max(5_000, elapsedMs * parallel * 2), 15_000);
  const learn = async () => {
    const contents: string[] = [];
    for (const args of variants) contents.push(contentOf(await callTool(session, callable, args, timeoutMs)));
    return contents;
  };
  const before = await learn();
  const listAlone = async () => (await session.request("tools/list", {}, { timeoutMs })).elapsedMs;
  const listBeforeMs = await listAlone();
  const calls = Array.from({ length: parallel }, async (_, at) => {
    const variant = at % variants.length;
    return { variant, answer: await callTool(session, callable, variants[variant] ?? {}, timeoutMs) };
  });
  const [list, answers] = await Promise.all([session.request("tools/list", {}, { timeoutMs }), Promise.all(calls)]);
  const allMs = Math.max(...answers.map(({ answer }) => answer.elapsedMs));
  const after = await learn();
  const listAloneMs = Math.min(listBeforeMs, await listAlone());
  // Only what is the same before and after, and different for different arguments, tells whose answer it is.
  const isTelling =
    before.every((content, at) => content === after[at]) &&
    new Set(before).size === variants.length &&
    variants.length > 1;
  return { answers, usual: isTelling ? before : [], list, listAloneMs, allMs };
}

/** Two sets of arguments that a reading tool answers differently, if it can be told from its schema. */
function variantsOf({ tool, arguments: args }: Callable): readonly Json[] {
  for (const [name, value] of Object.entries(fieldsOf(tool.inputSchema.properties))) {
    const schema = fieldsOf(value);
    const other = listOf(schema.enum).find(
      (choice) => choice !== args[name] && choice !== (args[name] ?? schema.default),
    );
    if (other !== undefined) return [args, { ...args, [name]: other }];
    const isFree =
      schema.type === "string" && ["enum", "pattern", "format", "const"].every((rule) => schema[rule] === undefined);
    if (isFree && typeof args[name] === "string") return [args, { ...args, [name]: `${String(args[name])}-2` }];
  }
  return [args];
}

function contentOf({ result }: ProbeAnswer): string {
  return JSON.stringify([result?.content, result?.structuredContent]);
}

function isStarved({ list, listAloneMs }: Rush): boolean {
  return list.elapsedMs > starvedMs && list.elapsedMs > listAloneMs * 20;
}

function findFault(probe: Probe, { answers, usual, list, ...rush }: Rush): Fault | undefined {
  const swapped = answers.find(
    ({ answer, variant }) =>
      isGood(answer) && usual.some((content, at) => at !== variant && content === contentOf(answer)),
  );
  if (swapped !== undefined)
    return {
      severity: "blocker",
      title: "Calls at the same time get each other's results",
      evidence: [
        probe.measured(`alone it brings ${probe.show(usual[swapped.variant] ?? "", 120)}`),
        probe.received(swapped.answer.result),
      ],
    };
  const lost = answers.filter(({ answer }) => answer.message === undefined && !isTurnedAway(answer));
  if (lost.length > 0)
    return {
      title: "Not every one of 32 calls at the same time is answered",
      evidence: [probe.measured(`${lost.length} of ${parallel} were not answered: ${lost[0]?.answer.problem}`)],
    };
  const broken = answers.filter(({ answer }) => answer.error?.code === -32603);
  if (broken.length > 0)
    return {
      severity: "minor",
      title: "Calls at the same time end in internal errors, though one alone does not",
      evidence: [probe.measured(`${broken.length} of ${parallel}`), probe.received(broken[0]?.answer.error)],
    };
  if (!isStarved({ answers, usual, list, ...rush })) return undefined;
  return {
    severity: "minor",
    title: "While 32 calls are under way, tools/list waits for seconds",
    evidence: [
      probe.measured(
        `tools/list took ${Math.round(list.elapsedMs)} ms meanwhile, ${Math.round(rush.listAloneMs)} ms alone`,
      ),
    ],
  };
}

/** A server may say that it is busy. */
function isTurnedAway({ http }: ProbeAnswer): boolean {
  return http?.status === 429 || http?.status === 503;
}
