import type { CallOptions } from "../../client/client.ts";
import { UsageError } from "../../errors.ts";
import { thisProgram } from "../../program/program.ts";
import { refuseExclusive } from "../exclusive-flags.ts";
import { readInputFile } from "../run-in-terminal.ts";
import { type OutFile, readOut } from "../screens/result-files.ts";
import { clean } from "../terminal.ts";
import type { TypedVerb } from "../verb.ts";
import { readJsonArguments } from "./call-arguments.ts";
import type { ResultOptions } from "./call-result.ts";
import { type Reach, toReach } from "./connect-target.ts";
import { describeTarget, quoteWord, readTarget, type ServerTarget, toCommand } from "./server-target.ts";

/** The parsed arguments of `meanwhile call`. */
export interface TypedCall {
  readonly reach: Reach;
  readonly tool: string;
  readonly pairs: readonly string[];
  readonly given: Readonly<Record<string, unknown>>;
  readonly format: ResultOptions["format"];
  readonly isQuiet: boolean;
  /** The file for images and files of the result. */
  readonly out: OutFile | undefined;
  readonly asTask: "follow" | "detach" | undefined;
  readonly timeoutMs: number | undefined;
  readonly options: Omit<CallOptions, "detach" | "timeoutMs">;
}

/** Parses the arguments. Throws a UsageError for each mistake before a server is started or connected. */
export async function readCall(typed: TypedVerb): Promise<TypedCall> {
  const { options, operands, server, terminal } = typed;
  const { target, tool, pairs } = readOperands(operands, server);
  const wrong = pairs.find((pair) => !/^[^=]+=/.test(pair));
  if (wrong !== undefined) throw new UsageError(`"${clean(wrong)}" is no argument; write it as key=value.`);
  if (options.detach === true && options.wait === true)
    throw new UsageError("--detach and --wait exclude each other; --detach leaves at once.");
  const ttlMs = readWhole(options.taskTtl, "--task-ttl");
  const pollIntervalMs = readWhole(options.pollInterval, "--poll-interval");
  const timeoutMs = readSeconds(options.timeout);
  refuseExclusive(options);
  const key = options.idempotencyKey as string | undefined;
  if (key === "") throw new UsageError("--idempotency-key is empty; give any text that names this one run.");
  const reach = toReach({ ...typed, target });
  const file = await readInputFile(options.input as string | undefined, terminal);
  return {
    reach,
    tool,
    pairs,
    given: { ...file, ...(typeof options.args === "string" && readJsonArguments(options.args)) },
    format: options.json === true ? "json" : options.yaml === true ? "yaml" : "plain",
    isQuiet: options.quiet === true,
    out: readOut(options.out, terminal, options.quiet === true),
    timeoutMs,
    asTask: options.detach === true ? "detach" : options.async === true ? "follow" : undefined,
    options: {
      ...((options.async === true || options.detach === true) && { asTask: true }),
      ...(ttlMs !== undefined && { ttlMs }),
      ...(pollIntervalMs !== undefined && { pollIntervalMs }),
      ...(options.new === true && { isNew: true }),
      ...(key !== undefined && { idempotencyKey: key }),
    },
  };
}

function readOperands(
  operands: readonly string[],
  server: readonly string[] | undefined,
): { target: ServerTarget; tool: string; pairs: readonly string[] } {
  if (server !== undefined) {
    const [tool, ...pairs] = operands;
    if (tool === undefined)
      throw new UsageError(
        `Say which tool to call: ${thisProgram.name} call <tool> [key=value …] -- <command> [argument …].`,
      );
    return { target: toCommand(server), tool, pairs };
  }
  const [target, tool, ...pairs] = operands;
  if (target === undefined)
    throw new UsageError(
      `Say which server to call, and which tool: ${thisProgram.name} call <target> <tool> [key=value …].`,
    );
  const read = readTarget(target);
  if (tool === undefined)
    throw new UsageError(
      `Say which tool to call; ${thisProgram.name} tools ${quoteWord(describeTarget(read))} lists them.`,
    );
  return { target: read, tool, pairs };
}

function readWhole(text: unknown, flag: string): number | undefined {
  if (typeof text !== "string") return undefined;
  const number = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(number) || number <= 0)
    throw new UsageError(`${flag} must be a positive whole number of milliseconds, not "${clean(text)}".`);
  return number;
}

function readSeconds(text: unknown): number | undefined {
  if (typeof text !== "string") return undefined;
  const seconds = /^(\d+|\d*\.\d+)$/.test(text) ? Number(text) : Number.NaN;
  if (!Number.isFinite(seconds) || seconds <= 0)
    throw new UsageError(`--timeout must be a positive number of seconds, not "${clean(text)}".`);
  return Math.ceil(seconds * 1000);
}
