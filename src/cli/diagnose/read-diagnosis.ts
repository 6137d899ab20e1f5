import { accessSync, constants, mkdirSync } from "node:fs";
import path from "node:path";
import { closest } from "../../command/suggest.ts";
import { type SuiteName, severities, suiteNames } from "../../diagnose/check.ts";
import { checkUrl, type DiagnosisTarget, type ToolToCall } from "../../diagnose/diagnosis-target.ts";
import { messageOf, UsageError } from "../../errors.ts";
import type { ProcessEnvironment } from "../../paths.ts";
import { thisProgram } from "../../program/program.ts";
import { executable, flagWords } from "../../project/project.ts";
import { readJsonArguments } from "../remote/call-arguments.ts";
import { readHeaders } from "../remote/connect-target.ts";
import { readTarget } from "../remote/server-target.ts";
import { clean } from "../terminal.ts";
import type { TypedVerb } from "../verb.ts";
import { type ReportOutput, reportFormats } from "./report-output.ts";

/** What the words of `meanwhile diagnose` mean. */
export interface TypedDiagnosis extends ReportOutput {
  readonly target: DiagnosisTarget;
  readonly suites: readonly SuiteName[] | undefined;
  readonly isFull: boolean;
  readonly tools: readonly ToolToCall[];
  readonly budgetMs: number | undefined;
  readonly memoryMb: number | undefined;
  readonly isDeterministic: boolean;
}

type Options = TypedVerb["options"];

/** Everything that can be wrong with the words is wrong before a server is started or asked. */
export function readDiagnosis(typed: TypedVerb, output: ReportOutput): TypedDiagnosis {
  const { options } = typed;
  refuseMixed(options);
  return {
    ...output,
    suites: readList(options.suites, suiteNames, "--suites"),
    isFull: options.full === true,
    tools: readTools(options),
    budgetMs: readBudget(options.budget),
    memoryMb: readMemory(options.memory),
    isDeterministic: options.deterministic === true,
    target: toTarget(typed),
  };
}

/** Words that do not go together. */
function refuseMixed(options: Options): void {
  const isTask = options.async === true || options.detach === true;
  if (options.async === true && options.detach === true)
    throw new UsageError("--async follows the task and --detach leaves it; give one of them.");
  if (!isTask && options.taskTtl !== undefined)
    throw new UsageError("--task-ttl is for diagnoses that run as a task; add --async.");
  if (!isTask && options.pollInterval !== undefined)
    throw new UsageError("--poll-interval is for diagnoses that run as a task; add --async.");
}

/** What is to become of the report; makes the folder it is to be written to. */
export function readOutput(options: Options, cwd: string): ReportOutput {
  const out = options.out as string | undefined;
  if (out === "") throw new UsageError("--out needs a folder.");
  const written = reportFormats.filter((name) => name !== "terminal");
  const formats = readList(options.format, reportFormats, "--format") ?? (out === undefined ? ["terminal"] : written);
  if (out === undefined && formats.length > 1)
    throw new UsageError("Several formats cannot be printed one after the other; --out <folder> writes them to files.");
  const [failOn = "major", ...more] = readList(options.failOn, [...severities, "never"] as const, "--fail-on") ?? [];
  if (more.length > 0) throw new UsageError("--fail-on takes one severity.");
  if (out !== undefined) makeFolder(out, cwd);
  return { formats, out, failOn, isQuiet: options.quiet === true };
}

/** Before anything else: a report that cannot be written is not worth waiting for. */
function makeFolder(out: string, cwd: string): void {
  try {
    mkdirSync(path.resolve(cwd, out), { recursive: true });
    accessSync(path.resolve(cwd, out), constants.W_OK);
  } catch (cause) {
    throw new UsageError(`--out ${clean(out)} cannot be written: ${messageOf(cause)}`, { cause });
  }
}

function readList<T extends string>(text: unknown, known: readonly T[], flag: string): readonly T[] | undefined {
  if (typeof text !== "string") return undefined;
  const words = text.split(",").map((word) => word.trim());
  for (const word of words) {
    if (known.includes(word as T)) continue;
    const guess = closest(word, known);
    throw new UsageError(
      `${flag}: there is no "${clean(word)}"; ${guess === undefined ? `there are ${known.join(", ")}` : `did you mean ${guess}`}${guess === undefined ? "." : "?"}`,
    );
  }
  // In the order in which they run, each once, however they were typed.
  return known.filter((word) => words.includes(word));
}

function readTools({ tool, args }: Options): ToolToCall[] {
  const names = (tool as string[] | undefined) ?? [];
  if (typeof args !== "string") return names.map((name) => ({ name }));
  const [name] = names;
  if (name === undefined || names.length > 1)
    throw new UsageError("--args are for one tool: name exactly one with --tool.");
  return [{ name, arguments: readJsonArguments(args) }];
}

function readBudget(text: unknown): number | undefined {
  if (typeof text !== "string") return undefined;
  const [, amount, unit] = /^(\d+(?:\.\d+)?)(ms|s|m)?$/.exec(text.trim()) ?? [];
  const ms = Number(amount) * { ms: 1, s: 1000, m: 60_000 }[(unit ?? "s") as "ms" | "s" | "m"];
  if (!(ms >= 1000 && ms <= 3_600_000))
    throw new UsageError(`--budget must be a time from 1s to 60m, e.g. 90s or 5m, not "${clean(text)}".`);
  return ms;
}

function readMemory(text: unknown): number | undefined {
  if (typeof text !== "string") return undefined;
  const megabytes = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (!(megabytes >= 64 && megabytes <= 8192))
    throw new UsageError(`--memory must be a whole number of megabytes from 64 to 8192, not "${clean(text)}".`);
  return megabytes;
}

/** A time in milliseconds, as `--task-ttl` and `--poll-interval` have it. */
export function readMs(options: Options, name: "taskTtl" | "pollInterval"): number | undefined {
  const text = options[name];
  if (typeof text !== "string") return undefined;
  const ms = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  const flag = name === "taskTtl" ? "--task-ttl" : "--poll-interval";
  if (!Number.isSafeInteger(ms) || ms <= 0)
    throw new UsageError(`${flag} must be a positive whole number of milliseconds, not "${clean(text)}".`);
  return ms;
}

function toTarget({ options, operands, server, flags, context }: TypedVerb): DiagnosisTarget {
  const headers = readHeaders((options.header as string[] | undefined) ?? [], "--header");
  const otherHeaders = readHeaders((options.otherHeader as string[] | undefined) ?? [], "--other-header");
  const foreignHeaders = readHeaders((options.foreignHeader as string[] | undefined) ?? [], "--foreign-header");
  const tokenVariable = options.tokenEnv as string | undefined;
  const target = readOperand(operands, server, { flags, context });
  if (target.kind === "stdio") {
    const given = [options.header, options.otherHeader, options.foreignHeader, tokenVariable];
    if (given.some((value) => value !== undefined))
      throw new UsageError(
        "--header, --other-header, --foreign-header and --token-env are for servers that are reached by a URL; this one is not.",
      );
    return target;
  }
  const isTyped = /^(localhost|127(\.\d+){3}|\[::1\])$/.test(new URL(target.url).hostname);
  return {
    ...target,
    headers: {
      ...headers,
      ...(tokenVariable !== undefined && { Authorization: `Bearer ${tokenOf(tokenVariable, context.env)}` }),
    },
    ...(options.otherHeader !== undefined && { otherHeaders }),
    ...(options.foreignHeader !== undefined && { foreignHeaders }),
    policy: { allowsPrivate: options.allowPrivate === true, allowsLoopback: isTyped },
  };
}

function readOperand(
  operands: readonly string[],
  server: readonly string[] | undefined,
  { flags, context }: Pick<TypedVerb, "flags" | "context">,
): DiagnosisTarget {
  const [word, ...rest] = operands;
  if (rest.length > 0) throw new UsageError(`There is one target, not ${operands.length}; a command stands behind --.`);
  if (server !== undefined) {
    if (word !== undefined) throw new UsageError("The target is named twice: a URL or a command behind --, not both.");
    if ((server[0] ?? "") === "")
      throw new UsageError("The server's command is empty; behind -- stands the program to start, then its arguments.");
    return { kind: "stdio", argv: server, cwd: context.cwd };
  }
  if (word === undefined)
    throw new UsageError(
      `Say which server to diagnose: ${thisProgram.name} diagnose <url>, . for this project's own, or -- <command> [argument …].`,
    );
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(word)?.[1]?.toLowerCase();
  if (scheme !== undefined && !/^https?$/.test(scheme))
    throw new UsageError(
      `The target cannot begin with ${scheme}:; a server is reached by http:// or https://, or started behind --.`,
    );
  const read = readTarget(word);
  if (read.kind === "url")
    return {
      kind: "http",
      url: checkUrl(read.url).href,
      headers: {},
      policy: { allowsPrivate: false, allowsLoopback: false },
    };
  if (read.kind === "own") {
    return { kind: "stdio", argv: [context.nodeFile, executable(), ...flagWords(flags), "serve"], cwd: context.cwd };
  }
  if (read.kind === "socket")
    throw new UsageError("A socket cannot be diagnosed; give a URL, or the server's command behind --.");
  // In one word it looks like a mistyped URL as often as like a command, and a command is run.
  throw new UsageError(
    `"${clean(word)}" is no URL; a server to start stands behind --: ${thisProgram.name} diagnose -- ${clean(word)}`,
  );
}

function tokenOf(variable: string, env: ProcessEnvironment): string {
  const token = env[variable]?.trim() ?? "";
  if (token === "") throw new UsageError(`--token-env: the variable ${clean(variable)} is not set, or empty.`);
  if (/[^\x21-\x7e]/.test(token))
    throw new UsageError(`--token-env: the variable ${clean(variable)} holds characters that no bearer token has.`);
  return token;
}
