import { Exit, type ExitCode } from "../../errors.ts";
import { silentLog } from "../../log.ts";
import { placeOfProject } from "../../project/stored-project.ts";
import { openTasks, placeOf } from "../../runtime/tasks.ts";
import { readSettings } from "../../settings/settings.ts";
import type { CommandStats } from "../../task/history.ts";
import type { VerbCall } from "../main.ts";
import { printHelp, widthFor } from "../screens/layout.ts";
import { statsTable } from "../screens/tasks-view.ts";
import { clean } from "../terminal.ts";
import { parseVerb } from "../verb.ts";

export async function run(call: VerbCall): Promise<ExitCode> {
  const parsed = parseVerb(
    "stats",
    "Show how long commands take: half of the runs, 95 and 99 of a hundred end within these times",
    call.words,
    (program) => {
      program.option("--json", "print as JSON");
      program.option("--all", "of every project, not of this one alone");
    },
  );
  if ("help" in parsed) {
    printHelp(parsed.help, call.terminal);
    return Exit.Ok;
  }
  const { settings, notice } = readSettings({ cwd: process.cwd(), env: process.env, flags: call.flags });
  if (notice !== undefined) call.terminal.say(`${call.terminal.colors.yellow("!")} ${notice}\n`);
  const tasks = await openTasks(settings, silentLog);
  const { history } = tasks;
  const isAll = parsed.options.all === true;
  const all = isAll
    ? await history.statsOfAll()
    : (await history.stats()).map((item) => ({ ...item, project: settings.project }));
  await tasks.close();
  const stats = all.map(({ project, ...item }) => ({
    project: placeOfProject(settings.home, project) ?? project,
    ...item,
  }));
  if (parsed.options.json === true) call.terminal.print(`${JSON.stringify(stats, null, 2)}\n`);
  else if (stats.length === 0)
    call.terminal.print(
      isAll ? "Nothing has run yet.\n" : `Nothing has run yet in ${placeOf(settings)}; --all shows every project.\n`,
    );
  else
    for (const [project, items] of Map.groupBy(stats, (item) => item.project))
      call.terminal.print(toGroup(project, items, widthFor(call.terminal)));
  return Exit.Ok;
}

function toGroup(project: string, items: readonly CommandStats[], width: number): string {
  return `${clean(project)}\n${statsTable(items, width)}`;
}
