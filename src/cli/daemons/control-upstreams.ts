import { askDaemon } from "../../daemon/reach/ask-daemon.ts";
import { CommandError, Exit, type ExitCode, UsageError } from "../../errors.ts";
import { upstreamLogFile } from "../../gateway/upstream-log.ts";
import type { UpstreamStatus } from "../../gateway/upstreams-control.ts";
import { type Home, openHome } from "../../paths.ts";
import { thisProgram } from "../../program/program.ts";
import { readSettings, type Settings } from "../../settings/settings.ts";
import { printData } from "../run-in-terminal.ts";
import { widthFor } from "../screens/layout.ts";
import { LogTail } from "../screens/log-tail.ts";
import { upstreamsTable } from "../screens/upstreams-view.ts";
import { clean } from "../terminal.ts";
import type { TypedVerb } from "../verb.ts";
import { findDaemons } from "./find-daemons.ts";
import { followLog } from "./print-log.ts";

/** An upstream of a daemon that runs, or one that a config names and nobody has needed yet. */
interface FoundUpstream extends UpstreamStatus {
  /** The project that it belongs to. */
  readonly project: string;
  readonly isThisProject: boolean;
  /** Nothing but this and its like is served. */
  readonly isWrapped: boolean;
  /** The daemon that has it. */
  readonly daemon?: { readonly pid: number; readonly key: string };
}

export const subverbs = { status, restart, logs, login };

/** `meanwhile upstreams …` */
export async function controlUpstreams(name: keyof typeof subverbs, typed: TypedVerb): Promise<ExitCode> {
  const { cwd, env } = typed.context;
  const home = openHome(env);
  const { settings, notice } = readSettings({ cwd, env, flags: typed.flags });
  if (notice !== undefined) typed.terminal.say(`${typed.terminal.colors.yellow("!")} ${notice}\n`);
  const all = await findUpstreams(home, settings);
  return await subverbs[name](typed, all, { home, settings });
}

interface Surroundings {
  readonly home: Home;
  readonly settings: Settings;
}

/** Those of every running daemon of this home, then those of this project that none has. */
async function findUpstreams(home: Home, settings: Settings): Promise<FoundUpstream[]> {
  const running = (await findDaemons(home)).flatMap((daemon): FoundUpstream[] =>
    daemon.kind !== "well" || daemon.record.isDraining === true
      ? []
      : (daemon.upstreams ?? []).map((one) => ({
          ...one,
          project: daemon.project ?? "",
          isThisProject: daemon.project === settings.project,
          isWrapped: daemon.isWrap === true,
          daemon: { pid: daemon.pid, key: daemon.key },
        })),
  );
  const known = new Set(running.flatMap(({ name, isThisProject }) => (isThisProject ? [name] : [])));
  const idle = Object.entries(settings.upstreams)
    .filter(([name]) => !known.has(name))
    .map(
      ([name, { command, url }]): FoundUpstream => ({
        name,
        kind: url === undefined ? "command" : "url",
        target: url === undefined ? (command ?? "") : url.replace(/[?#].*$/s, ""),
        state: "idle",
        ...{ connections: 0, calls: 0, tools: 0, pids: [] },
        ...{ project: settings.project, isThisProject: true, isWrapped: false },
      }),
    );
  return [...running, ...idle];
}

async function status(
  { operands: [name], options, terminal }: TypedVerb,
  all: readonly FoundUpstream[],
): Promise<ExitCode> {
  const wanted = name === undefined ? all : choose(name, all);
  if (options.json === true) terminal.print(`${JSON.stringify({ upstreams: wanted.map(toJson) }, null, 2)}\n`);
  else if (wanted.length === 0)
    terminal.print(
      `No upstream is known here; \`${thisProgram.name} wrap -- <command …>\` serves one, and \`upstreams\` in a config names those of a project.\n`,
    );
  else terminal.print(upstreamsTable(wanted, terminal.colors, widthFor(terminal)));
  return Exit.Ok;
}

function toJson({ daemon, ...upstream }: FoundUpstream): object {
  return { ...upstream, ...(daemon !== undefined && { daemon: daemon.pid }) };
}

/** All of a name: sessions with other values have daemons, and servers, of their own. */
function choose(name: string, all: readonly FoundUpstream[]): readonly FoundUpstream[] {
  const found = all.filter((one) => one.name === name);
  if (found.length > 0) return found;
  const names = [...new Set(all.map((one) => one.name))];
  throw new CommandError(
    `There is no upstream ${clean(name)} here; ${names.length === 0 ? "none is known" : `there are ${names.map(clean).join(", ")}`}.`,
  );
}

function nameIn({ operands: [name] }: TypedVerb, verb: string): string {
  if (name === undefined) throw new UsageError(`\`upstreams ${verb}\` takes the name of an upstream.`);
  return name;
}

async function restart(typed: TypedVerb, all: readonly FoundUpstream[], { home }: Surroundings): Promise<ExitCode> {
  const name = nameIn(typed, "restart");
  const { terminal } = typed;
  const running = choose(name, all).flatMap(({ daemon }) => daemon ?? []);
  if (running.length === 0)
    throw new CommandError(`No daemon has the upstream ${clean(name)}; it is started when it is needed.`);
  for (const { key, pid } of running) {
    const reply = await askDaemon(home, key, { meanwhile: "restart", upstream: name });
    if (reply === "silent" || reply?.meanwhile !== "done")
      throw new CommandError(`Daemon ${pid} does not answer; ${thisProgram.name} daemon status says more.`);
    if (reply.trouble !== undefined) throw new CommandError(reply.trouble);
    terminal.say(
      `${terminal.colors.green("✓")} ${clean(name)} is closed in daemon ${pid}; the next call starts it again\n`,
    );
  }
  return Exit.Ok;
}

async function logs(typed: TypedVerb, all: readonly FoundUpstream[], { home }: Surroundings): Promise<ExitCode> {
  const { terminal, options } = typed;
  const found = choose(nameIn(typed, "logs"), all);
  const files = [...new Set(found.map(({ project, name }) => upstreamLogFile(home, project, name)))];
  const isFollowed = options.follow === true;
  if (isFollowed && files.length > 1)
    throw new CommandError(
      `Upstreams of ${files.length} projects have this name; follow one in its project's folder, or read all without --follow.`,
    );
  for (const file of files) {
    const tail = new LogTail(file);
    if (!tail.exists && !isFollowed) terminal.say(`It has written nothing yet; its log will be ${file}.\n`);
    else await followLog(tail, { file, isFollowed, terminal, take: (text) => printData(text, terminal) });
  }
  return Exit.Ok;
}

async function login(
  typed: TypedVerb,
  all: readonly FoundUpstream[],
  { home, settings }: Surroundings,
): Promise<ExitCode> {
  const name = nameIn(typed, "login");
  const config = Object.hasOwn(settings.upstreams, name) ? settings.upstreams[name] : undefined;
  if (config === undefined) {
    choose(name, all);
    throw new CommandError(
      `${clean(name)} is in no config of this project; where it is wrapped, \`${thisProgram.name} wrap --login --url <its address>\` signs in.`,
    );
  }
  const { signInToUpstreams } = await import("./sign-in-upstreams.ts");
  return await signInToUpstreams({
    upstreams: { [name]: config },
    home,
    terminal: typed.terminal,
    context: typed.context,
  });
}
