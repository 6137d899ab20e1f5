import { stripVTControlCharacters } from "node:util";
import type { Client, Target as ClientTarget } from "../../client/client.ts";
import { ConnectionError } from "../../client/client-errors.ts";
import { systemClock } from "../../clock.ts";
import {
  Cancelled,
  CommandError,
  Exit,
  messageOf,
  RequestError,
  RpcCode,
  RuntimeError,
  TimedOut,
  UsageError,
} from "../../errors.ts";
import { thisProgram } from "../../program/program.ts";
import type { ProjectFlags } from "../../project/project.ts";
import { executable, flagWords } from "../../project/project.ts";
import { failureLine } from "../../wire/failure-line.ts";
import type { ProcessContext } from "../process-context.ts";
import { clean, cleanLines, StageView, type Terminal } from "../terminal.ts";
import type { TypedVerb } from "../verb.ts";
import { describeTarget, quoteWord, type ServerTarget } from "./server-target.ts";

/** How a target is reached, as typed. */
export interface Reach {
  readonly target: ServerTarget;
  readonly headers: Readonly<Record<string, string>>;
  readonly tokenVariable: string | undefined;
  readonly revision: string | undefined;
  /** Say which project is this one's own. */
  readonly flags: ProjectFlags;
  readonly context: ProcessContext;
}

/** What was typed about a target. */
export interface TypedReach extends Pick<TypedVerb, "options" | "flags" | "context"> {
  readonly target: ServerTarget;
}

export function toReach({ target, options, flags, context }: TypedReach): Reach {
  const headers = readHeaders((options.header as string[] | undefined) ?? []);
  const tokenVariable = options.tokenEnv as string | undefined;
  const isUrl = target.kind === "url";
  if (!isUrl && Object.keys(headers).length > 0)
    throw new UsageError("--header is for servers that are reached by a URL; this one is not.");
  if (!isUrl && tokenVariable !== undefined)
    throw new UsageError("--token-env is for servers that are reached by a URL; this one is not.");
  if (tokenVariable !== undefined && Object.keys(headers).some((name) => name.toLowerCase() === "authorization"))
    throw new UsageError("--token-env and an Authorization header exclude each other; give one of them.");
  if (tokenVariable !== undefined && (context.env[tokenVariable] ?? "") === "")
    throw new UsageError(`--token-env: the variable ${clean(tokenVariable)} is not set, or empty.`);
  return { target, headers, tokenVariable, revision: options.revision as string | undefined, flags, context };
}

/** What is wrong is said without the header itself: it may be a secret. */
export function readHeaders(texts: readonly string[], flag = "--header"): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const text of texts) {
    const [, name, value] = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*)$/s.exec(text) ?? [];
    if (name === undefined || value === undefined || value.trim() === "")
      throw new UsageError(`${flag} must read 'Name: value'.`);
    if (!/^[\t\x20-\x7e\u0080-\u00ff]*$/.test(value))
      throw new UsageError(`${flag}: the value of ${name} holds characters that a header cannot carry.`);
    headers[name] = value.trim();
  }
  return headers;
}

/** The words that name the same target again. Headers are not repeated: they may be secrets. */
function reachWords({ target, headers, tokenVariable, revision }: Reach): string {
  return [
    quoteWord(describeTarget(target)),
    ...Object.keys(headers).map((name) => `--header '${name}: …'`),
    ...(tokenVariable === undefined ? [] : [`--token-env ${quoteWord(tokenVariable)}`]),
    ...(revision === undefined ? [] : [`--revision ${quoteWord(revision)}`]),
  ].join(" ");
}

/** The words that list the tools of this target. */
export function toolsWords(reach: Reach): string {
  return `${startWords(reach)} tools ${reachWords(reach)}`;
}

/** The words that do something with a task of this target. */
export function taskWords(what: string, reach: Reach): string {
  return `${startWords(reach)} tasks ${what} --target ${reachWords(reach)}`;
}

function startWords({ target, flags }: Reach): string {
  return [thisProgram.name, ...(target.kind === "own" ? flagWords(flags).map(quoteWord) : [])].join(" ");
}

/** The words that answer what a task of this target asks. */
export function answerWords(taskId: string, fields: readonly string[], reach: Reach): string {
  return taskWords(
    `answer ${[quoteWord(clean(taskId)), ...fields.map((field) => `${quoteWord(clean(field))}=…`)].join(" ")}`,
    reach,
  );
}

export interface Connecting {
  readonly reach: Reach;
  readonly terminal: Terminal;
  readonly isQuiet?: boolean;
  /** For all of it, connecting included. */
  readonly timeoutMs?: number | undefined;
}

export interface Connected {
  readonly client: Client;
  /** While this lasts, Ctrl-C means what the work makes of it; before and after, it leaves at once. */
  readonly lendInterrupts: <T>(work: () => Promise<T>) => Promise<T>;
  /** Aborted when the time is over. */
  readonly deadline: AbortSignal;
}

/** Connects, works, and closes again, whatever happens. What the server's side did wrong is said in one sentence. */
export async function withClient<T>(connecting: Connecting, work: (connected: Connected) => Promise<T>): Promise<T> {
  const { terminal, timeoutMs } = connecting;
  let lastWords = "";
  const stop = new AbortController();
  const late = new AbortController();
  const stopClock =
    timeoutMs === undefined
      ? undefined
      : systemClock.after(timeoutMs, () => late.abort(new TimedOut(timeoutMs / 1000)));
  let client: Client | undefined;
  let isLent = false;
  const stopListening = terminal.onInterrupt(() => {
    if (isLent) return;
    if (client !== undefined || stop.signal.aborted) terminal.leave(Exit.Cancelled);
    else stop.abort(new Cancelled("Cancelled."));
  });
  const lendInterrupts = async <R>(during: () => Promise<R>): Promise<R> => {
    isLent = true;
    return await during().finally(() => (isLent = false));
  };
  const signal = AbortSignal.any([stop.signal, late.signal]);
  try {
    const { connect } = await import("../../client/client.ts");
    const opening = connect(toClientTarget(connecting.reach), {
      name: `${thisProgram.name}-cli`,
      signal,
      ...(connecting.reach.revision !== undefined && { revision: connecting.reach.revision }),
      onStderr: (text) => {
        lastWords = `${lastWords}${text}`.slice(-maxLastWords);
      },
    });
    client = await showConnecting(opening, connecting);
    return await work({ client, lendInterrupts, deadline: late.signal });
  } catch (error) {
    const shown = signal.aborted ? signal.reason : toSentence(error, connecting.reach);
    throw client === undefined && shown instanceof CommandError ? withLastWords(shown, lastWords) : shown;
  } finally {
    stopClock?.();
    // A server may take its time to end, so Ctrl-C is heard until it has.
    await client?.close();
    stopListening();
  }
}

/** What takes longer than a moment is shown, where it can be taken away again. */
async function showConnecting<T>(opening: Promise<T>, { terminal, reach, isQuiet = false }: Connecting): Promise<T> {
  if (!terminal.isLive || isQuiet) return await opening;
  let view: StageView | undefined;
  const show = () => {
    view = new StageView(terminal, { elapsedMs: momentMs });
    view.progress({
      value: 0,
      total: undefined,
      message: `Connecting to ${describeTarget(reach.target)}`,
      percentage: undefined,
      context: undefined,
    });
  };
  const cancelShow = systemClock.after(momentMs, show);
  return await opening.finally(() => {
    cancelShow();
    view?.end();
  });
}

const momentMs = 500;
const maxLastWords = 2_000;

const shownLines = 10;

/**
 * Adds what the server printed before it answered anything: the last 10 lines, without the line that the sentence has
 * already.
 */
function withLastWords(error: CommandError, printed: string): CommandError {
  const { lastWords } = error.cause instanceof ConnectionError ? error.cause : {};
  const lines = cleanLines(stripVTControlCharacters(lastWords ?? printed))
    .split("\n")
    .filter((line) => line.trim() !== "");
  const told = lastWords === undefined ? -1 : lines.findLastIndex((line) => line.trim() === failureLine(lastWords));
  const others = lines.filter((_, at) => at !== told).slice(-shownLines);
  if (others.length === 0) return error;
  const text = others.map((line) => `  | ${line}`).join("\n");
  return new CommandError(`${error.message}\n  It also printed:\n${text}`, { cause: error });
}

function toClientTarget({ target, headers, tokenVariable, flags, context }: Reach): ClientTarget {
  switch (target.kind) {
    case "own":
      return { command: context.nodeFile, args: [executable(), ...flagWords(flags), "serve"] };
    case "url":
      return { url: target.url, headers, ...(tokenVariable !== undefined && { tokenVariable }) };
    case "socket":
      return { socket: target.socket };
    case "command":
      return { command: target.command, args: target.args };
  }
}

const howToGiveToken = () =>
  `\n  Name the variable that holds the token with --token-env; for a server of your own: TOKEN=$(${thisProgram.name} token) ${thisProgram.name} … --token-env TOKEN`;

/**
 * True where nothing was sent that says who we are. The home's own token goes to no address by itself: anybody may
 * listen there.
 */
function wantsToken(error: unknown, { headers, tokenVariable }: Reach): boolean {
  const isUnknown =
    tokenVariable === undefined && !Object.keys(headers).some((name) => name.toLowerCase() === "authorization");
  return isUnknown && error instanceof ConnectionError && error.status === 401;
}

/** A server's words are shown, never obeyed; and what it did is no bug of ours. */
function toSentence(error: unknown, reach: Reach): unknown {
  const isOurs =
    error instanceof UsageError ||
    error instanceof Cancelled ||
    error instanceof TimedOut ||
    error instanceof RuntimeError;
  const isBug = error instanceof TypeError || error instanceof ReferenceError;
  if (isOurs || isBug) return error;
  const message = `${cleanLines(messageOf(error))}${wantsToken(error, reach) ? howToGiveToken() : ""}`;
  const isAboutWords =
    (error instanceof RequestError && error.kind === "params") ||
    (error as { code?: unknown } | undefined)?.code === RpcCode.Params;
  return isAboutWords ? new UsageError(message, { cause: error }) : new CommandError(message, { cause: error });
}
