import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { systemClock, toTimestamp } from "../clock.ts";
import { ownArguments } from "../command/aliases.ts";
import { localUser } from "../command/caller.ts";
import { type Catalog, type CatalogEntry, openCatalog } from "../command/catalog.ts";
import type { Answer, Origin, ProgressReport, Question, Root } from "../command/context.ts";
import { type Envelope, toEnvelope } from "../command/envelope.ts";
import { runWithRetries } from "../command/retries.ts";
import { runCommand } from "../command/run.ts";
import { closest } from "../command/suggest.ts";
import { CommandError, messageOf } from "../errors.ts";
import { isBundledFile } from "../paths.ts";
import { findConfigFile, packFolder } from "../project/project.ts";
import { loadConfigOnly } from "../settings/load-config.ts";
import { rulesOf } from "../task/retry.ts";
import { answerRoots, withRoots } from "./given-roots.ts";

export interface CallToolOptions {
  /** Where the commands are. Default: `commands` in the working folder. */
  readonly commands?: string | readonly string[];
  /** Default: the `toolPrefix` of the config file in the working folder. */
  readonly toolPrefix?: string;
  /**
   * `false`: the commands that come with Meanwhile are unknown. By default they are found where the folders have none
   * of that name.
   */
  readonly bundled?: boolean;
  /** What `task.home` is. A bundled command without one gets an empty folder that is gone after the call. */
  readonly home?: string;
  /** What `task.config` is. */
  readonly config?: Readonly<Record<string, unknown>>;
  /** What `task.origin` is. Default: a terminal in the working folder. */
  readonly origin?: Origin;
  /** What `task.roots()` gives. Default: nothing. */
  readonly roots?: readonly Root[];
  readonly onProgress?: (report: ProgressReport) => void;
  /** Answers what the command asks, confirmations included. Without it nobody can be asked. */
  readonly answer?: (question: Question) => Answer | Promise<Answer>;
  readonly signal?: AbortSignal;
}

const log = { debug() {}, info() {}, warn() {}, error() {} };

/**
 * Calls a tool by its MCP name, in this process and without a transport; the envelope is the one a client gets, with
 * the log. Never rejects for what a client would be told in it.
 */
export async function callTool(
  name: string,
  args: Readonly<Record<string, unknown>> = {},
  options: CallToolOptions = {},
): Promise<Envelope> {
  const { commands = "commands", bundled = true } = options;
  if (typeof name !== "string" || name === "") return refusal("Say which tool to call: callTool(name, args).");
  let { toolPrefix } = options;
  try {
    toolPrefix ??= await projectPrefix();
  } catch (error) {
    return refusal(messageOf(error));
  }
  const folders = (typeof commands === "string" ? [commands] : commands).map((folder) => path.resolve(folder));
  const catalogs: Catalog[] = [];
  for (const opened of [folders, ...(bundled ? [[packFolder()]] : [])]) {
    const catalog = await openCatalog({ folders: opened, toolPrefix, log });
    const entry = catalog.get(name);
    if (entry !== undefined) return await run(entry, { name, args, options });
    const problem = catalog.problemOf(name);
    if (problem !== undefined) return refusal(`${problem.file} could not be loaded: ${problem.text}`);
    catalogs.push(catalog);
  }
  const known = catalogs.flatMap(({ entries }) => entries.map(({ toolName }) => toolName));
  const guess = closest(name, known);
  return refusal(
    `Unknown tool ${name}; ${guess === undefined ? `there are ${known.join(", ") || `none in ${folders.join(", ")}`}.` : `did you mean ${guess}?`}`,
  );
}

/** Returns the prefix that a server of the project in the working folder puts in front of its tools. */
async function projectPrefix(): Promise<string> {
  const file = findConfigFile(path.resolve());
  return file === undefined ? "" : ((await loadConfigOnly(file)).toolPrefix ?? "");
}

interface Called {
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly options: CallToolOptions;
}

async function run(entry: CatalogEntry, { name, args, options }: Called): Promise<Envelope> {
  const { config = {}, onProgress, roots, signal } = options;
  const origin = withRoots(options.origin ?? { door: "terminal", folder: path.resolve() }, roots);
  const nobody = ({ message }: Question) => {
    throw new CommandError(`${entry.toolName} asks «${message}», and nobody can be asked here.`);
  };
  const { answer = nobody } = options;
  // What comes with Meanwhile keeps its data there, and a test must not leave it in the working folder.
  const ownHome =
    options.home === undefined && isBundledFile(entry.file)
      ? mkdtempSync(path.join(tmpdir(), "meanwhile-home-"))
      : undefined;
  try {
    const { command, toolName } = entry;
    const input = ownArguments(entry, name, args);
    const run = (attempt: number) =>
      runCommand(command, input, {
        name: toolName,
        attempt,
        clock: systemClock,
        home: options.home ?? ownHome ?? "",
        config,
        caller: localUser,
        origin,
        door: {
          ...(onProgress !== undefined && { progress: onProgress }),
          ask: async (question) => answerRoots(question, roots) ?? (await answer(question)),
        },
        ...(signal !== undefined && { signals: [signal] }),
      });
    const outcome = await runWithRetries({
      name: toolName,
      rules: rulesOf(command),
      clock: systemClock,
      stopped: () => signal ?? new AbortController().signal,
      run,
      onRetry: () => undefined,
    });
    return toEnvelope(outcome, true);
  } catch (error) {
    return refusal(messageOf(error));
  } finally {
    if (ownHome !== undefined) rmSync(ownHome, { recursive: true, force: true });
  }
}

function refusal(text: string): Envelope {
  return { success: false, data: {}, messages: [{ type: "error", text, timestamp: toTimestamp(systemClock.now()) }] };
}
