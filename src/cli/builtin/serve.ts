import { currentRun } from "../../command/run.ts";
import { isPort, loadSettings, type Settings } from "../../config.ts";
import { Exit, type ExitCode, UsageError } from "../../errors.ts";
import { type Logger, openLog } from "../../log.ts";
import { surviveCommands, takeStdout } from "../../process-guard.ts";
import { openRuntime, type Runtime, serveRuntimeOverHttp, serveStreams } from "../../serve.ts";
import type { VerbCall } from "../main.ts";
import type { Terminal } from "../terminal.ts";
import { collect, parseVerb } from "../verb.ts";

/** How long tasks may go on when the server is told to stop. */
const drainMs = 25_000;
/** How long open connections may take to close. */
const closeMs = 3_000;

export async function run(call: VerbCall): Promise<ExitCode> {
  const parsed = parseVerb("serve", "Serve the commands to MCP clients: over stdio, or over HTTP with --http", call.words, (program) => {
    program.option("--http", "serve Streamable HTTP instead of stdio");
    program.option("--port <number>", "HTTP port, 0 for any free one (default 7337)");
    program.option("--host <address>", "loopback address to listen on (default 127.0.0.1)");
    program.option("--require-token", "refuse HTTP calls without the home's token");
    program.option("--in-process", "stdio without the daemon: what runs ends with this process");
    program.option("--commands <folder>", "a folder of commands; may be given several times", collect);
    program.option("--no-bundled", "without the commands that come with Meanwhile");
  });
  if ("help" in parsed) {
    call.terminal.print(parsed.help);
    return Exit.Ok;
  }
  const { options } = parsed;
  const port = options.port === undefined ? undefined : Number(options.port);
  if (port !== undefined && !isPort(port)) throw new UsageError(`--port must be a whole number from 0 to 65535, not ${String(options.port)}.`);
  const commands = (options.commands as string[] | undefined) ?? call.flags.commands;
  const project = { ...(commands !== undefined && { commands }), ...((options.bundled === false || call.flags.bundled === false) && { bundled: false }) };
  if (options.http !== true && options.inProcess !== true && process.platform !== "win32") {
    for (const name of ["port", "host", "requireToken"]) if (options[name] !== undefined) throw new UsageError(`--${toWord(name)} is for --http.`);
    const { runFront } = await import("../../front.ts");
    return (await runFront(project)) as ExitCode;
  }
  const settings = await loadSettings({
    cwd: process.cwd(),
    env: process.env,
    flags: {
      ...project,
      ...(port !== undefined && { port }),
      ...(options.host !== undefined && { host: options.host as string }),
      ...(options.requireToken === true && { requireToken: true }),
    },
  });
  return options.http === true ? await overHttp(settings, call.terminal) : await overStdio(settings);
}

function toWord(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

async function overStdio(settings: Settings): Promise<ExitCode> {
  const stdout = takeStdout(process);
  const runtime = await open(settings);
  const stopped = new Promise<void>((resolve) => onStop(resolve));
  await Promise.race([stopped, serveStreams(runtime, { input: process.stdin, output: stdout.stream, write: (text) => stdout.write(text) })]);
  await runtime.close(0);
  return Exit.Ok;
}

async function overHttp(settings: Settings, terminal: Terminal): Promise<ExitCode> {
  takeStdout(process);
  const runtime = await open(settings);
  const door = await serveRuntimeOverHttp(runtime);
  await runtime.startTasks();
  terminal.say(nextSteps(door.url, runtime, terminal));
  await new Promise<void>((resolve) => onStop(resolve));
  terminal.say("Stopping.\n");
  await runtime.close(drainMs);
  await Promise.race([door.close(), new Promise<void>((resolve) => runtime.clock.after(closeMs, resolve))]);
  return Exit.Ok;
}

async function open(settings: Settings): Promise<Runtime> {
  const log: Logger = openLog({ level: settings.logLevel, isTerminal: process.stderr.isTTY === true, write: (text) => process.stderr.write(text) });
  surviveCommands(process, { currentRun, onBug: (error) => log.error("nobody caught this; please report it", { error }) });
  return await openRuntime(settings, log);
}

/** The first signal stops in good order, a second one at once. */
function onStop(stop: () => void): void {
  let isStopping = false;
  const onSignal = () => {
    if (isStopping) process.exit(Exit.Cancelled);
    isStopping = true;
    stop();
  };
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, onSignal);
}

function nextSteps(url: string, runtime: Runtime, terminal: Terminal): string {
  const { bold, cyan, dim } = terminal.colors;
  const { catalog, settings } = runtime;
  const count = `${catalog.entries.length} command${catalog.entries.length === 1 ? "" : "s"}`;
  const first = catalog.entries.find((entry) => entry.command.effects === "read" && ((entry.command.inputSchema.required ?? []) as string[]).length === 0);
  const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"${first?.toolName}"}}`;
  const tryIt =
    first === undefined
      ? ["  Write a first command    meanwhile new hello/world"]
      : [
          `  Call one from here       meanwhile ${first.path.join(" ")}`,
          `  Call one over HTTP       curl -s ${url} -H 'content-type: application/json' \\`,
          `                             -H 'accept: application/json, text/event-stream' -d '${body}'`,
        ];
  return [
    "",
    `${bold("Meanwhile")} ${settings.version} serves ${count} at ${cyan(url)}`,
    "",
    `  Add it to Claude Code    claude mcp add --transport http meanwhile ${url}`,
    `  Add it to another client ${dim("in its MCP settings")}  { "mcpServers": { "meanwhile": { "url": "${url}" } } }`,
    ...tryIt,
    `  Home                     ${settings.home.folder}`,
    "",
    dim("  Ctrl-C stops it."),
    "",
    "",
  ].join("\n");
}
