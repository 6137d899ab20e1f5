import { Exit } from "../../errors.ts";
import { placeOfProject } from "../../project/stored-project.ts";
import { readSettings } from "../../settings/settings.ts";
import type { CommandStats } from "../../task/history.ts";
import { flag } from "../completion/grammar.ts";
import { jsonFlag } from "../flags.ts";
import { widthFor } from "../screens/layout.ts";
import { blockedHint, statsTable } from "../screens/tasks-view.ts";
import { clean } from "../terminal.ts";
import type { Verb } from "../verb.ts";

export const verb: Verb = {
  description: "Show how long commands take: half of the runs, 95 and 99 of a hundred end within these times",
  flags: [jsonFlag, flag("--all", "of every project, not of this one alone")],
  async run({ options, flags, terminal, context: { cwd, env } }) {
    const { settings, notice } = readSettings({ cwd, env, flags });
    if (notice !== undefined) terminal.say(`${terminal.colors.yellow("!")} ${notice}\n`);
    const { openTasks, placeOf } = await import("../../runtime/open-tasks.ts");
    const tasks = await openTasks(settings);
    const { history } = tasks;
    const isAll = options.all === true;
    const all = isAll
      ? await history.statsOfAll()
      : (await history.stats()).map((item) => ({ ...item, project: settings.project }));
    await tasks.close();
    const stats = all.map(({ project, ...item }) => ({
      project: placeOfProject(settings.home, project) ?? project,
      ...item,
    }));
    if (options.json === true) terminal.print(`${JSON.stringify(stats, null, 2)}\n`);
    else if (stats.length === 0)
      terminal.print(
        isAll ? "Nothing has run yet.\n" : `Nothing has run yet in ${placeOf(settings)}; --all shows every project.\n`,
      );
    else
      for (const [project, items] of Map.groupBy(stats, (item) => item.project))
        terminal.print(toGroup(project, items, widthFor(terminal)));
    const hint = options.json === true ? "" : blockedHint(stats);
    if (hint !== "") terminal.say(`${terminal.colors.yellow("!")} ${hint}\n`);
    return Exit.Ok;
  },
};

function toGroup(project: string, items: readonly CommandStats[], width: number): string {
  return `${clean(project)}\n${statsTable(items, width)}`;
}
