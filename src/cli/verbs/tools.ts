import { type Catalog, openCatalog } from "../../command/catalog.ts";
import { Exit, type ExitCode, messageOf, UsageError } from "../../errors.ts";
import { silentLog } from "../../log.ts";
import { toTool } from "../../mcp/command-tools.ts";
import { servedCatalog, takingPlaceOfBundled, unknownLongTools } from "../../project/project-commands.ts";
import { loadSettings, type Settings } from "../../settings/settings.ts";
import { storeExists } from "../../store/open.ts";
import { isTaskModeRecommended, type KnownDurations } from "../../task/history.ts";
import { beforeDashes } from "../command-usage.ts";
import type { VerbCall } from "../main.ts";
import { declareReach, toReach } from "../remote/connect-target.ts";
import { listRemoteTools } from "../remote/remote-tools.ts";
import { readTarget, type Target, toCommand } from "../remote/server-target.ts";
import { printHelp } from "../screens/layout.ts";
import { columnsOf, toolsTable } from "../screens/tools-view.ts";
import { clean, cleanLines, type Terminal } from "../terminal.ts";
import { declareProject, parseVerb, toProjectFlags } from "../verb.ts";

const description = `List the commands as MCP clients see them; exit 1 when a file could not be loaded.

With a target, list the tools of that server: a URL, a socket, a command line in
one word or behind --, or . for this project's own server.`;

export async function run(call: VerbCall): Promise<ExitCode> {
  const own = beforeDashes(call.words);
  const parsed = parseVerb("tools", description, own, (program) => {
    program.argument("[target]").usage("[target] [options]");
    program.option("--json", "print the whole list as JSON, schemas included");
    declareProject(program);
    declareReach(program);
  });
  if ("help" in parsed) {
    printHelp(parsed.help, call.terminal);
    return Exit.Ok;
  }
  const { options, operands } = parsed;
  const flags = toProjectFlags(options, call.flags);
  const target = toTarget(operands[0], own.length === call.words.length ? undefined : call.words.slice(own.length + 1));
  if (target !== undefined)
    return await listRemoteTools(
      { reach: toReach(target, options, flags), terminal: call.terminal },
      options.json === true,
    );
  if (["header", "tokenEnv", "revision"].some((name) => options[name] !== undefined))
    throw new UsageError("--header, --token-env and --revision say how to reach a server; give its target too.");
  await call.protectStdout();
  const settings = await loadSettings({ cwd: process.cwd(), env: process.env, flags });
  const catalog = await openCatalog(servedCatalog(settings, silentLog));
  call.terminal.print(
    options.json === true
      ? toJson(catalog, await readKnown(catalog, settings, call.terminal))
      : toolsTable(catalog.entries, columnsOf(call.terminal)),
  );
  reportProblems(catalog, call.terminal);
  for (const { path: words, file } of takingPlaceOfBundled(catalog.entries))
    call.terminal.say(
      `${call.terminal.colors.yellow("!")} \`${words.join(" ")}\` takes the place of a bundled command in a terminal here: ${clean(file)}\n`,
    );
  const unknown = unknownLongTools(settings.deferral.tools, catalog);
  if (unknown !== undefined) call.terminal.say(`${call.terminal.colors.yellow("!")} ${clean(unknown)}\n`);
  return catalog.problems.length === 0 ? Exit.Ok : Exit.CommandFailed;
}

function toTarget(word: string | undefined, behind: readonly string[] | undefined): Target | undefined {
  if (behind === undefined) return word === undefined ? undefined : readTarget(word);
  if (word !== undefined)
    throw new UsageError("Behind -- stands the server's command line, so there is no target before it.");
  return toCommand(behind);
}

/** How long the commands take, by tool name. A listing makes no store, and does without one that cannot be read. */
async function readKnown(
  catalog: Catalog,
  settings: Settings,
  terminal: Terminal,
): Promise<ReadonlyMap<string, KnownDurations>> {
  const known = new Map<string, KnownDurations>();
  if (!(await storeExists(settings.store))) return known;
  try {
    const { openTasks } = await import("../../runtime/tasks.ts");
    const tasks = await openTasks(settings, silentLog);
    try {
      for (const { toolName } of catalog.entries) {
        const durations = await tasks.history.known(toolName);
        if (durations !== undefined) known.set(toolName, durations);
      }
    } finally {
      await tasks.close();
    }
  } catch (error) {
    terminal.say(`${terminal.colors.yellow("!")} How long the commands take is not known: ${messageOf(error)}\n`);
  }
  return known;
}

function toJson(catalog: Catalog, known: ReadonlyMap<string, KnownDurations>): string {
  const tools = catalog.entries.map((entry) => {
    const stats = known.get(entry.toolName);
    return {
      ...toTool(entry),
      command: `meanwhile ${entry.path.join(" ")}`,
      file: entry.file,
      bundled: entry.isBundled === true,
      async: entry.command.long,
      taskModeRecommended: isTaskModeRecommended(entry.command, stats),
      ...(stats !== undefined && { stats }),
    };
  });
  return `${JSON.stringify({ tools, problems: catalog.problems }, null, 2)}\n`;
}

function reportProblems(catalog: Catalog, terminal: Terminal): void {
  const { red } = terminal.colors;
  for (const problem of catalog.problems)
    terminal.say(`${red("✗")} ${problem.toolName} is missing: ${clean(problem.file)}: ${cleanLines(problem.text)}\n`);
}
