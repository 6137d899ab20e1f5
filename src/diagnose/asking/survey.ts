import { sleep } from "../../clock.ts";
import { messageOf } from "../../errors.ts";
import { fieldsOf, isObject, type Json, textOf } from "../../wire/json.ts";
import { metaKeys } from "../../wire/request-envelope.ts";
import { legacyRevision, modernRevision } from "../../wire/revisions.ts";
import type { Listed, ProbeAnswer, ProbeSession } from "../wire/probe-session.ts";
import type { EraFacts, Facts, SurveyedTool } from "./facts.ts";
import type { Probe } from "./probe.ts";

/** How long a server may take to start and to answer for the first time: `npx` may have to unpack it. */
const firstAnswerMs = { stdio: 15_000, http: 8_000 };
const maxToolBytes = 64 * 1024;
/** What comes beside the tools is not worth waiting for. */
const offersMs = 2_000;
const toolsMs = 8_000;
const maxWay = 2_000;
/** How much longer than an answer to `initialize` one to `server/discover` may take. */
const silenceMs = 3_000;

/** Learns what a server is: which revisions it speaks, what it declares and which tools it has. */
export async function survey(probe: Probe): Promise<Facts> {
  const transport = probe.target.kind;
  let [modern, legacy] = await greetBoth(probe);
  const movedTo = isModern(modern) || isLegacy(legacy) ? undefined : wayOn(probe, [legacy, modern]);
  if (movedTo !== undefined) {
    probe.moveTo(movedTo);
    [modern, legacy] = await greetBoth(probe);
  }
  // A server may hold a port or a lock, so that a second one beside it leaves: each is met again, alone.
  if (transport === "stdio" && [modern, legacy].some(hasLeft)) {
    await probe.close();
    modern = hasLeft(modern) ? await greetAlone(probe, modernRevision) : modern;
    legacy = await greetAlone(probe, legacyRevision);
  }
  const spoken = isModern(modern) ? modern : isLegacy(legacy) ? legacy : undefined;
  const tools = spoken?.tools ?? { items: [], problem: undefined };
  const isListed = tools.problem === undefined;
  // Only the older revision says of each tool whether it may be a task.
  const older = isListed && isModern(modern) && isLegacy(legacy) ? legacy.tools.items.flatMap(toTool) : [];
  const supports = new Map(older.map(({ name, taskSupport }) => [name, taskSupport]));
  // A wrapped tool says nothing of it: the follow-up tool beside it does.
  const isBehindMeanwhile = tools.items.some(
    ({ name, _meta }) => /(^|_)task_result$/.test(textOf(name) ?? "") && isObject(fieldsOf(_meta)["meanwhile/tool"]),
  );
  const offers = spoken?.offers ?? {};
  const problem = spoken === undefined ? explain(legacy, modern) : undefined;
  return {
    transport,
    modern: isModern(modern) ? eraOf(modern, modernRevision) : undefined,
    legacy: isLegacy(legacy) ? eraOf(legacy, agreedRevision(legacy.answer)) : undefined,
    tools: tools.items
      .flatMap(toTool)
      .map((tool) => ({ ...tool, isBehindMeanwhile, taskSupport: tool.taskSupport ?? supports.get(tool.name) })),
    ...offers,
    ...(tools.problem !== undefined && { toolsProblem: probe.show(tools.problem) }),
    ...(problem !== undefined && { problem: probe.show(problem) }),
    ...(movedTo !== undefined && { movedTo }),
    isLocked: [legacy, modern].some((greeting) => [401, 403].includes(greeting.answer?.http?.status ?? 0)),
  };
}

interface Greeting {
  readonly answer: ProbeAnswer;
  readonly startMs: number;
  readonly tools: Listed;
  readonly offers: Pick<Facts, "prompts" | "resources">;
}
type NoGreeting = { readonly problem: string; readonly answer?: ProbeAnswer; readonly startMs?: undefined };

/**
 * Both ways to begin at the same time. Old servers may stay silent when they are asked in the new way: they are not
 * waited for much longer.
 */
async function greetBoth(probe: Probe): Promise<[modern: Greeting | NoGreeting, legacy: Greeting | NoGreeting]> {
  const modern = greet(probe, modernRevision);
  const legacy = greet(probe, legacyRevision);
  const silent = legacy.then(async (greeting) => {
    if (!isLegacy(greeting)) return await modern;
    await sleep(probe.clock, silenceMs);
    return { problem: "no answer" };
  });
  return [await Promise.race([modern, silent]), await legacy];
}

async function greetAlone(probe: Probe, revision: string): Promise<Greeting | NoGreeting> {
  const greeting = await greet(probe, revision);
  await probe.close();
  return greeting;
}

async function greet(probe: Probe, revision: string): Promise<Greeting | NoGreeting> {
  const startedAt = probe.clock.monotonic();
  try {
    const { session, answer } = await probe.greet({ revision, timeoutMs: firstAnswerMs[probe.target.kind] });
    const startMs = probe.clock.monotonic() - startedAt;
    if (answer.result === undefined) return { answer, startMs, tools: nothing, offers: {} };
    const tools = await session.list("tools/list", "tools", { timeoutMs: toolsMs });
    return { answer, startMs, tools, offers: tools.problem === undefined ? await listOffers(session) : {} };
  } catch (error) {
    return { problem: messageOf(error) };
  }
}

const nothing: Listed = { items: [], pages: 0, answers: [] };

/** Where clients go on: a redirect that keeps the method, within the origin; followed once, like `/mcp` to `/mcp/`. */
function wayOn({ target }: Probe, greeting: readonly (Greeting | NoGreeting)[]): string | undefined {
  if (target.kind !== "http") return undefined;
  const home = new URL(target.url);
  for (const { answer } of greeting) {
    const { status = 0, headers = {} } = answer?.http ?? {};
    const to = status === 307 || status === 308 ? URL.parse(headers.location ?? "", home.href) : null;
    if (to?.origin === home.origin && to.href !== home.href && to.href.length < maxWay)
      return `${to.pathname}${to.search}`;
  }
  return undefined;
}

/** True for a server that ended instead of answering. */
function hasLeft(greeting: Greeting | NoGreeting | undefined): boolean {
  return greeting?.answer?.problem?.includes("left") === true;
}

function isModern(greeting: Greeting | NoGreeting): greeting is Greeting {
  const versions = greeting.answer?.result?.supportedVersions;
  return Array.isArray(versions) && versions.includes(modernRevision);
}

function isLegacy(greeting: Greeting | NoGreeting): greeting is Greeting {
  return greeting.answer?.result !== undefined;
}

/**
 * What a server says it speaks is sent back to it, and decides how: anything but an older revision's date is not taken
 * over.
 */
function agreedRevision({ result }: ProbeAnswer): string {
  const told = textOf(result?.protocolVersion) ?? "";
  return /^\d{4}-\d\d-\d\d$/.test(told) && told < modernRevision ? told : legacyRevision;
}

/** What else is put before a model: prompts and resources, of those that declare any. */
async function listOffers(session: ProbeSession): Promise<Pick<Facts, "prompts" | "resources">> {
  const { prompts, resources } = session.capabilities;
  const few = { maxItems: 200, maxPages: 10, timeoutMs: offersMs };
  const read = async (method: string, field: string) => (await session.list(method, field, few)).items.filter(isSmall);
  return {
    ...(prompts !== undefined && { prompts: await read("prompts/list", "prompts") }),
    ...(resources !== undefined && {
      resources: [
        ...(await read("resources/list", "resources")),
        ...(await read("resources/templates/list", "resourceTemplates")),
      ],
    }),
  };
}

function eraOf({ answer, startMs }: Greeting, revision: string): EraFacts {
  const hello = answer.result ?? {};
  const info = revision === modernRevision ? fieldsOf(hello._meta)[metaKeys.serverInfo] : hello.serverInfo;
  const instructions = textOf(hello.instructions);
  return {
    revision,
    serverInfo: isSmall(info) ? fieldsOf(info) : {},
    capabilities: isSmall(hello.capabilities) ? fieldsOf(hello.capabilities) : {},
    ...(instructions !== undefined && { instructions: instructions.slice(0, maxToolBytes) }),
    startMs,
  };
}

function toTool(json: Json): SurveyedTool[] {
  const name = textOf(json.name);
  if (name === undefined) return [];
  return [
    {
      name: name.slice(0, 1_000),
      description: textOf(json.description)?.slice(0, maxToolBytes) ?? "",
      inputSchema: isSmall(json.inputSchema) ? fieldsOf(json.inputSchema) : {},
      annotations: isSmall(json.annotations) ? fieldsOf(json.annotations) : {},
      taskSupport: textOf(fieldsOf(json.execution).taskSupport),
      json: isSmall(json) ? json : { name: name.slice(0, 1_000) },
    },
  ];
}

function isSmall(value: unknown): boolean {
  return JSON.stringify(value ?? null).length <= maxToolBytes;
}

function explain(legacy: Greeting | NoGreeting, modern: Greeting | NoGreeting): string {
  const told = [legacy, modern].map(({ answer, ...greeting }) => {
    if (answer?.error !== undefined) return `error ${String(answer.error.code)}: ${String(answer.error.message)}`;
    return answer?.problem ?? ("problem" in greeting ? greeting.problem : "no answer");
  });
  return told[0] === told[1] ? (told[0] as string) : `initialize: ${told[0]}; server/discover: ${told[1]}`;
}
