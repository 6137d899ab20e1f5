import { formatDuration, systemClock } from "../clock.ts";
import { UsageError } from "../errors.ts";
import { findCallables } from "./asking/callables.ts";
import type { Facts } from "./asking/facts.ts";
import { type CalledTool, isSuccess } from "./asking/tool-calls.ts";
import { type Check, type SuiteName, suiteNames } from "./check.ts";
import { checkUrl, type DiagnosisTarget, nameOf, type ToolToCall } from "./diagnosis-target.ts";
import { CheckProcess, type CheckReply } from "./process/check-process.ts";
import type { CheckConditions } from "./process/run-check.ts";
import { type Asked, assemble, suiteOf } from "./report/assemble.ts";
import type { Report } from "./report/report.ts";
import { checks as allChecks } from "./suites/index.ts";
import { checkReach } from "./wire/addresses.ts";

/** What to ask, of whom, and within which bounds. */
export interface DiagnosisOptions {
  readonly target: DiagnosisTarget;
  /** Default: all. */
  readonly suites?: readonly SuiteName[] | undefined;
  /** Also what takes long or calls tools often. */
  readonly isFull?: boolean | undefined;
  /** Tools that may be called though they do not say that they only read. */
  readonly tools?: readonly ToolToCall[] | undefined;
  /** All in all. Default: 2 min, with `isFull` 10 min. */
  readonly budgetMs?: number | undefined;
  /** For the process that speaks to the server. Default: 512. */
  readonly memoryMb?: number | undefined;
  /** The same report for every run against the same server: without times, ids and figures. */
  readonly isDeterministic?: boolean | undefined;
  /**
   * A folder of the user's that no server should hand files out of: a file of ours lies there for a moment, to see who
   * does. Default: that is not asked.
   */
  readonly privateFolder?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Told before each check, and at the end. */
  readonly onStep?: (step: DiagnosisStep) => void;
  /** Which Meanwhile asks. */
  readonly version: string;
}

export interface DiagnosisStep {
  readonly done: number;
  readonly total: number;
  readonly suite: SuiteName | undefined;
  readonly question: string;
}

const defaults = {
  limitMs: 10_000,
  requestMs: 5_000,
  impatientMs: 1_500,
  surveyMs: 25_000,
  graceMs: 4_000,
  memoryMb: 512,
  budgetMs: 120_000,
  fullBudgetMs: 600_000,
};
/** After so many checks that were cut off, the others get less time: this server will not get better. */
const patienceFor = 2;
/** How many tools are called only to see whether any of them works. */
const maxTried = 8;
/** How often a server on stdio is started in a full diagnosis, roughly. */
const startsPerRun = 40;

/** Asks every question of the chosen suites, one after the other, and reports what was seen. */
export async function runDiagnosis(options: DiagnosisOptions): Promise<Report> {
  const startedAt = systemClock.now();
  const begun = systemClock.monotonic();
  const chosen = choose(options);
  if (options.target.kind === "http") await checkReach(checkUrl(options.target.url), options.target.policy);
  const child = new CheckProcess(options.memoryMb ?? defaults.memoryMb);
  const budgetMs = options.budgetMs ?? (options.isFull === true ? defaults.fullBudgetMs : defaults.budgetMs);
  const run = new Run(options, child, begun + budgetMs);
  try {
    const facts = await run.survey();
    if (options.budgetMs === undefined) run.extend(Math.min(startsPerRun * startMsOf(facts), defaults.fullBudgetMs));
    refuseUnknownTools(facts, options.tools ?? []);
    const asked = await run.ask(chosen, facts);
    const calls = await run.tryCalls(facts);
    options.signal?.throwIfAborted();
    return assemble({
      target: options.target,
      facts,
      asked,
      calls,
      suites: options.suites ?? suiteNames,
      isFull: options.isFull === true,
      isDeterministic: options.isDeterministic === true,
      startedAt,
      durationMs: systemClock.monotonic() - begun,
      version: options.version,
      incomplete: whyIncomplete(facts, asked, budgetMs),
    });
  } finally {
    await child.close();
  }
}

/** The checks that were asked for, in their order. */
function choose({ suites = suiteNames }: DiagnosisOptions): readonly Check[] {
  for (const suite of suites)
    if (!suiteNames.includes(suite))
      throw new UsageError(`There is no suite ${suite}; there are ${suiteNames.join(", ")}.`);
  if (suites.length === 0) throw new UsageError(`No suite is chosen; there are ${suiteNames.join(", ")}.`);
  return allChecks.filter((check) => suites.includes(suiteOf(check)));
}

function refuseUnknownTools({ tools, problem }: Facts, named: readonly ToolToCall[]): void {
  if (problem !== undefined) return;
  for (const { name } of named) {
    if (tools.some((tool) => tool.name === name)) continue;
    throw new UsageError(
      `The server has no tool ${name}; it has ${
        tools
          .slice(0, 20)
          .map((tool) => tool.name)
          .join(", ") || "none"
      }.`,
    );
  }
}

/** The one check that says why a server does not answer. */
const answersId = "protocol/answers";

class Run {
  readonly #options: DiagnosisOptions;
  readonly #child: CheckProcess;
  #endsAt: number;
  #cutOff = 0;

  constructor(options: DiagnosisOptions, child: CheckProcess, endsAt: number) {
    this.#options = options;
    this.#child = child;
    this.#endsAt = endsAt;
  }

  /** A server that is slow to start needs more time, without anything being wrong. */
  extend(ms: number): void {
    this.#endsAt += ms;
  }

  async survey(): Promise<Facts> {
    this.#options.onStep?.({
      done: 0,
      total: 0,
      suite: undefined,
      question: `Meeting ${nameOf(this.#options.target)}`,
    });
    const limitMs = Math.min(defaults.surveyMs, this.#leftMs());
    const reply = await this.#child.ask(
      { type: "survey", conditions: this.#conditions() },
      limitMs,
      this.#options.signal,
    );
    this.#options.signal?.throwIfAborted();
    if (reply.type === "facts") return reply.facts;
    const { kind } = this.#options.target;
    return {
      transport: kind,
      modern: undefined,
      legacy: undefined,
      tools: [],
      isLocked: false,
      problem: `the server could not be met: ${describeReply(reply)}`,
    };
  }

  async ask(chosen: readonly Check[], facts: Facts): Promise<Asked[]> {
    const asked = new Map<Check, Asked>();
    for (const check of inAskingOrder(chosen)) {
      if (this.#options.signal?.aborted === true) break;
      this.#options.onStep?.({
        done: asked.size,
        total: chosen.length,
        suite: suiteOf(check),
        question: check.question,
      });
      const begun = systemClock.monotonic();
      const verdict = await this.#askOne(check, facts);
      asked.set(check, { check, verdict, durationMs: systemClock.monotonic() - begun });
    }
    this.#options.onStep?.({
      done: chosen.length,
      total: chosen.length,
      suite: undefined,
      question: "Writing the report",
    });
    return chosen.flatMap((check) => asked.get(check) ?? []);
  }

  async #askOne(check: Check, facts: Facts): Promise<Asked["verdict"]> {
    const isAskable =
      facts.problem === undefined || check.id === answersId || (facts.isLocked && check.isForLocked === true);
    if (!isAskable) return { outcome: "skipped", why: "The server could not be spoken to." };
    if (check.isThorough === true && this.#options.isFull !== true)
      return { outcome: "skipped", why: "It takes long or calls tools often, so it is asked with --full only." };
    const leftMs = this.#leftMs();
    if (leftMs <= 0)
      return { outcome: "unfinished", why: "The budget was used up before it was asked; --budget gives more." };
    const isImpatient = this.#cutOff >= patienceFor;
    const usualMs = (check.limitMs ?? defaults.limitMs) + 3 * startMsOf(facts);
    const limitMs = Math.min(isImpatient ? defaults.impatientMs * 2 : usualMs, leftMs);
    const conditions = { ...this.#conditions(isImpatient ? defaults.impatientMs : defaults.requestMs), facts, limitMs };
    const reply = await this.#child.ask(
      { type: "check", id: check.id, conditions },
      limitMs + defaults.graceMs,
      this.#options.signal,
    );
    if (reply.type === "verdict") return reply.verdict;
    this.#cutOff++;
    return { outcome: "unfinished", why: `It was not finished: ${describeReply(reply)}.` };
  }

  /**
   * What became of the tools' calls. Those that no check has made are made here: of tools that the user named, and of
   * any while none has succeeded.
   */
  async tryCalls(facts: Facts): Promise<readonly CalledTool[]> {
    const { tools: named = [], signal } = this.#options;
    if (facts.problem !== undefined || signal?.aborted === true) return [];
    const { calls } = this.#child;
    const hasSuccess = [...calls.values()].some(isSuccess);
    const callables = findCallables(facts.tools, named);
    const open = callables
      .filter(({ tool, isNamed }) => !calls.has(tool.name) && (isNamed || !hasSuccess))
      .slice(0, maxTried);
    const isImpatient = this.#cutOff >= patienceFor;
    const limitMs = Math.min(isImpatient ? defaults.impatientMs : defaults.limitMs, this.#leftMs());
    const names = open.map(({ tool }) => tool.name);
    if (names.length > 0 && limitMs > 0)
      await this.#child.ask(
        { type: "trial", names, conditions: { ...this.#conditions(), facts, limitMs } },
        limitMs + defaults.graceMs + 3 * startMsOf(facts),
        signal,
      );
    return [
      ...named.map(
        ({ name }) =>
          calls.get(name) ??
          uncalled(
            name,
            callables.some(({ tool }) => tool.name === name),
          ),
      ),
      ...facts.tools.flatMap(({ name }) => (named.some((one) => one.name === name) ? [] : (calls.get(name) ?? []))),
    ];
  }

  #conditions(requestMs = defaults.requestMs): CheckConditions {
    const { target, tools = [], isFull = false, privateFolder } = this.#options;
    return { target, tools, isFull, requestMs, privateFolder };
  }

  #leftMs(): number {
    return this.#endsAt - systemClock.monotonic();
  }
}

/** A tool that was named and that nobody could call. */
function uncalled(tool: string, hasArguments: boolean): CalledTool {
  const note = hasArguments
    ? "the time was used up before it was its turn; --budget gives more"
    : "no arguments could be guessed for it; give some with --args";
  return { tool, isNamed: true, outcome: "not called", note };
}

/** What costs nothing comes first, then the question people have; should the time run out, these have their answers. */
function inAskingOrder(chosen: readonly Check[]): readonly Check[] {
  const rank = (check: Check) => (check.isStatic === true ? 0 : suiteOf(check) === "hosts" ? 1 : 2);
  return chosen.toSorted((one, other) => rank(one) - rank(other));
}

/** How long a server takes to start, and every check that starts it again with it. */
function startMsOf({ transport, modern, legacy }: Facts): number {
  return transport === "http" ? 0 : Math.max(modern?.startMs ?? 0, legacy?.startMs ?? 0);
}

function describeReply(reply: CheckReply): string {
  if (reply.type === "killed") return reply.why;
  return reply.type === "broken" ? reply.message.replace(/\.$/, "") : "its process gave an answer nobody had asked for";
}

function whyIncomplete(facts: Facts, asked: readonly Asked[], budgetMs: number): string | undefined {
  if (facts.isLocked && facts.problem !== undefined)
    return "The server wants credentials, so it could not be judged; give the variable that holds a token with --token-env NAME, or --header 'Name: value'.";
  if (facts.problem !== undefined) return "The server could not be spoken to, so only that is reported.";
  const open = asked.filter(({ verdict }) => verdict.outcome === "unfinished").length;
  if (open === 0) return undefined;
  return `${open} of ${asked.length} checks could not be finished (budget ${formatDuration(budgetMs)}); they say nothing about the server.`;
}
