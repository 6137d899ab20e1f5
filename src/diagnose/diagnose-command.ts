import { CommandError, UsageError } from "../errors.ts";
import { type Command, type CommandContext, defineCommand, type JsonSchema, jsonSchema } from "../index.ts";
import { type SuiteName, severities, suiteNames } from "./check.ts";
import type { DiagnosisTarget, ToolToCall } from "./diagnosis-target.ts";
import type { Report } from "./report/report.ts";
import { hasScore, whyNoScore } from "./report/score.ts";
import { AddressRefused } from "./wire/addresses.ts";

/**
 * A diagnosis as a command. The checks themselves are loaded when it runs: whoever only lists commands does not pay for
 * them.
 *
 * Over MCP a model says what to do, so `diagnose_server` takes URLs only, never starts a command, calls only tools that
 * say they only read, and private addresses are refused unless the config says otherwise. What a person types in a
 * terminal goes by `ownCommand` instead, which no client can see.
 */

interface CommonInput {
  readonly suites?: readonly SuiteName[];
  readonly full?: boolean;
  readonly budgetSeconds?: number;
  readonly memoryMb?: number;
  readonly deterministic?: boolean;
}

interface ServerInput extends CommonInput {
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** What a person asked for in a terminal. */
interface OwnInput extends CommonInput {
  readonly target: DiagnosisTarget;
  readonly tools?: readonly ToolToCall[];
}

const commonFields: Record<string, JsonSchema> = {
  suites: {
    type: "array",
    items: { type: "string", enum: [...suiteNames] },
    uniqueItems: true,
    minItems: 1,
    description: "Which suites to ask; all by default.",
  },
  full: { type: "boolean", default: false, description: "Also what takes long: restarts, memory growth, short ttls." },
  budgetSeconds: {
    type: "number",
    exclusiveMinimum: 0,
    maximum: 3600,
    description: "All in all. Default: 120, with full 600.",
  },
  memoryMb: {
    type: "integer",
    minimum: 64,
    maximum: 8192,
    default: 512,
    description: "For the process that speaks to the server.",
  },
  deterministic: {
    type: "boolean",
    default: false,
    description: "The same report for every run against the same server: without times, ids and figures.",
  },
};

const serverInput = jsonSchema<ServerInput>({
  type: "object",
  properties: {
    url: {
      type: "string",
      format: "uri",
      pattern: "^https?://",
      description: "The server's address, e.g. https://example.org/mcp.",
    },
    headers: {
      type: "object",
      additionalProperties: { type: "string" },
      description: "Sent with every request, e.g. Authorization; never shown in the report.",
    },
    ...commonFields,
  },
  required: ["url"],
  additionalProperties: false,
});

const ownInput = jsonSchema<OwnInput>({
  type: "object",
  properties: {
    target: { type: "object" },
    tools: { type: "array" },
    pollIntervalMs: { type: "number" },
    ...commonFields,
  },
  required: ["target"],
});

const text = { type: "string" };
const textList = { type: "array", items: text };

/** What a client may count on; docs/diagnose.schema.json says it all. */
const output = jsonSchema<Report>({
  type: "object",
  properties: {
    target: {
      type: "object",
      properties: {
        transport: text,
        name: text,
        server: { type: "object" },
        revisions: textList,
        tasks: textList,
        tools: { type: "integer" },
      },
    },
    score: {
      type: "object",
      properties: {
        points: { type: ["number", "null"] },
        grade: { type: ["string", "null"] },
        lost: { type: "array" },
        explanation: text,
      },
    },
    findings: {
      type: "array",
      items: {
        type: "object",
        properties: {
          id: text,
          severity: { enum: [...severities] },
          title: text,
          why: text,
          remedy: text,
          evidence: { type: "array" },
        },
        required: ["id", "severity", "title", "why", "remedy", "evidence"],
      },
    },
    checks: {
      type: "array",
      items: { type: "object", properties: { id: text, outcome: text, note: text }, required: ["id", "outcome"] },
    },
    headline: text,
    calls: { type: "array" },
    skipped: { type: "array" },
    incomplete: text,
  },
  required: ["target", "score", "findings", "checks"],
});

const texts = {
  summary: "Say whether an MCP server will survive in the hosts people use, and what to change",
  description:
    "Reports what is wrong with evidence and a remedy each. Takes 10 s to a few minutes. Calls only tools that say they only read.",
};

/** The MCP tool `diagnose_server`. */
export const diagnoseServer: Command = defineCommand({
  ...texts,
  input: serverInput,
  output,
  long: true,
  effects: "read",
  estimate: ({ full }) => (full === true ? 90 : 15),
  aliases: [{ name: "diagnose_mcp_server", arguments: { endpoint: "url" } }],
  examples: ["--url https://example.org/mcp", "--url https://example.org/mcp --full true"],
  summarize,
  run: async ({ url, headers = {}, ...input }, task) => {
    const allowsPrivate = (task.config.diagnose as { allowPrivate?: boolean } | undefined)?.allowPrivate === true;
    const target: DiagnosisTarget = {
      kind: "http",
      url,
      headers,
      policy: { allowsPrivate, allowsLoopback: allowsPrivate },
    };
    try {
      return toModel(await runCommand({ ...input, target }, task));
    } catch (error) {
      if (!(error instanceof AddressRefused)) throw error;
      throw new CommandError(
        error.message.replace(
          /; allow it.*$/,
          "; the config of this server can allow them: diagnose: { allowPrivate: true }.",
        ),
        {
          cause: error,
        },
      );
    }
  },
});

/** The same, for what a person typed: any target, any tool. */
const own = (isSafe: boolean): Command =>
  defineCommand({
    ...texts,
    input: ownInput,
    output,
    long: true,
    effects: isSafe ? "read" : "write",
    estimate: ({ full }) => (full === true ? 90 : 15),
    summarize,
    run: runCommand,
  });

const ownCommands: Readonly<Record<string, Command>> = {
  diagnose: own(true),
  // A tool that was named may do anything, and must not be called again after a crash without being asked for.
  diagnose_tools: own(false),
};

/** Commands of our own that run as tasks and that no client can call. */
export function ownCommand(
  toolName: string,
): { toolName: string; path: readonly string[]; file: string; command: Command } | undefined {
  const command = Object.hasOwn(ownCommands, toolName) ? ownCommands[toolName] : undefined;
  return command === undefined ? undefined : { toolName, path: ["diagnose"], file: "", command };
}

/** A model has little room: of the checks it gets what became of them, not how. */
function toModel(report: Report): Report {
  const checks = report.checks.map(({ id, outcome, note }) => ({
    id,
    outcome,
    ...(outcome !== "passed" && note !== undefined && { note }),
  }));
  const incomplete = report.incomplete
    ?.replace(/ --token-env NAME, or --header 'Name: value'/, " `headers`")
    .replace("give the variable that holds a token with", "give them in");
  const explanation = report.score.explanation.replace(
    /; (?:name (?:one|it|each)|make one work)[^;]*--(?:args|suites)\.$/,
    ".",
  );
  return {
    ...report,
    score: { ...report.score, explanation },
    checks: checks as unknown as Report["checks"],
    ...(incomplete !== undefined && { incomplete }),
  };
}

async function runCommand({ target, tools, ...input }: OwnInput, task: CommandContext): Promise<Report> {
  const { runDiagnosis } = await import("./run-diagnosis.ts");
  try {
    return await runDiagnosis({
      target,
      tools,
      suites: input.suites,
      isFull: input.full,
      budgetMs: input.budgetSeconds === undefined ? undefined : input.budgetSeconds * 1000,
      memoryMb: input.memoryMb,
      isDeterministic: input.deterministic,
      privateFolder: typeof task.config.home === "string" ? task.config.home : undefined,
      signal: task.signal,
      version: typeof task.config.version === "string" ? task.config.version : "",
      onStep: ({ done, total, suite, question }) => {
        const message = suite === undefined ? question : `Running ${suite} suite`;
        task.progress(total === 0 ? message : { done, total, message });
      },
    });
  } catch (error) {
    // The words came from a model or a terminal; here they are arguments like any other.
    throw error instanceof UsageError ? new CommandError(error.message, { cause: error }) : error;
  }
}

function summarize(report: Report): string {
  const { findings, incomplete, headline } = report;
  const counts = severities.flatMap((severity) => {
    const count = findings.filter((finding) => finding.severity === severity).length;
    return count === 0 ? [] : [`${count} ${severity}${count === 1 || severity === "info" ? "" : "s"}`];
  });
  const points = hasScore(report) ? `${report.score.points} of 100 (${report.score.grade})` : "no grade";
  const why = hasScore(report) || incomplete !== undefined ? incomplete : whyNoScore(report);
  return `${headline === undefined ? "" : `${headline} `}${points}: ${counts.join(", ") || "nothing found"}${why === undefined ? "" : `. ${why}`}`;
}
