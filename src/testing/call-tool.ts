import path from "node:path";
import { systemClock, toTimestamp } from "../clock.ts";
import { openCatalog } from "../command/catalog.ts";
import type { Answer, Origin, ProgressReport, Question } from "../command/context.ts";
import { type Envelope, toEnvelope } from "../command/envelope.ts";
import { runCommand } from "../command/run.ts";
import { closest } from "../command/suggest.ts";

export interface CallToolOptions {
  /** Where the commands are. Default: `commands` in the working folder. */
  readonly commands?: string | readonly string[];
  readonly toolPrefix?: string;
  /** What `task.home` is. */
  readonly home?: string;
  /** What `task.config` is. */
  readonly config?: Readonly<Record<string, unknown>>;
  /** What `task.origin` is. Default: a terminal in the working folder. */
  readonly origin?: Origin;
  readonly onProgress?: (report: ProgressReport) => void;
  /** Answers what the command asks, confirmations included. Without it nobody can be asked. */
  readonly answer?: (question: Question) => Answer | Promise<Answer>;
  readonly signal?: AbortSignal;
}

const log = { debug() {}, info() {}, warn() {}, error() {} };

/** Calls a tool by its MCP name, in this process and without a transport; the envelope is the one a client gets, with the log. Never rejects for what a client would be told in it. */
export async function callTool(name: string, args: Readonly<Record<string, unknown>> = {}, options: CallToolOptions = {}): Promise<Envelope> {
  const { commands = "commands", toolPrefix = "", home = "", config = {}, onProgress, answer, signal } = options;
  const origin: Origin = options.origin ?? { door: "terminal", folder: path.resolve() };
  if (typeof name !== "string" || name === "") return refusal("Say which tool to call: callTool(name, args).");
  const folders = (typeof commands === "string" ? [commands] : commands).map((folder) => path.resolve(folder));
  const catalog = await openCatalog({ folders, toolPrefix, log });
  const entry = catalog.get(name);
  if (entry === undefined) {
    const problem = catalog.problemOf(name);
    if (problem !== undefined) return refusal(`${problem.file} could not be loaded: ${problem.text}`);
    const known = catalog.entries.map(({ toolName }) => toolName);
    const guess = closest(name, known);
    return refusal(
      `Unknown tool ${name}; ${guess === undefined ? `there are ${known.join(", ") || `none in ${folders.join(", ")}`}.` : `did you mean ${guess}?`}`,
    );
  }
  const outcome = await runCommand(entry.command, args, {
    name,
    clock: systemClock,
    home,
    config,
    caller: { kind: "local" },
    origin,
    door: {
      ...(onProgress !== undefined && { progress: onProgress }),
      ...(answer !== undefined && { ask: async (question: Question) => await answer(question) }),
    },
    ...(signal !== undefined && { signals: [signal] }),
  });
  return toEnvelope(outcome, true);
}

function refusal(text: string): Envelope {
  return { success: false, data: {}, messages: [{ type: "error", text, timestamp: toTimestamp(systemClock.now()) }] };
}
