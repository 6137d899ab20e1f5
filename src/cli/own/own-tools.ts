import { type Catalog, openCatalog } from "../../command/catalog.ts";
import { Exit, type ExitCode, messageOf } from "../../errors.ts";
import { silentLog } from "../../log.ts";
import { toTool } from "../../mcp/command-tools.ts";
import type { ProjectFlags } from "../../project/project.ts";
import { servedCatalog, takingPlaceOfBundled, unknownLongTools } from "../../project/project-commands.ts";
import { loadSettings, type Settings } from "../../settings/settings.ts";
import { storeExists } from "../../store/open.ts";
import { isTaskModeRecommended, type KnownDurations } from "../../task/outlook.ts";
import { columnsOf, toolsTable } from "../screens/tools-view.ts";
import { clean, cleanLines, type Terminal } from "../terminal.ts";

/** `meanwhile tools`: the commands as MCP clients see them, and what is wrong with their files. */
export async function listOwnTools(flags: ProjectFlags, terminal: Terminal, isJson: boolean): Promise<ExitCode> {
  const settings = await loadSettings({ cwd: process.cwd(), env: process.env, flags });
  const catalog = await openCatalog(servedCatalog(settings, silentLog));
  terminal.print(
    isJson
      ? toJson(catalog, await readKnown(catalog, settings, terminal))
      : toolsTable(catalog.entries, columnsOf(terminal)),
  );
  reportProblems(catalog, terminal);
  for (const { path: words, file } of takingPlaceOfBundled(catalog.entries))
    terminal.say(
      `${terminal.colors.yellow("!")} \`${words.join(" ")}\` takes the place of a bundled command in a terminal here: ${clean(file)}\n`,
    );
  const unknown = unknownLongTools(settings.deferral.tools, catalog);
  if (unknown !== undefined) terminal.say(`${terminal.colors.yellow("!")} ${clean(unknown)}\n`);
  return catalog.problems.length === 0 ? Exit.Ok : Exit.CommandFailed;
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
    const { openTasks } = await import("../../runtime/open-tasks.ts");
    const tasks = await openTasks(settings);
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
