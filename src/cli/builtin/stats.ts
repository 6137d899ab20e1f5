import { readSettings } from "../../config.ts";
import { Exit, type ExitCode } from "../../errors.ts";
import { silentLog } from "../../log.ts";
import { openTasks } from "../../tasks.ts";
import { printHelp, widthFor } from "../layout.ts";
import type { VerbCall } from "../main.ts";
import { statsTable } from "../tasks-view.ts";
import { parseVerb } from "../verb.ts";

export async function run(call: VerbCall): Promise<ExitCode> {
  const parsed = parseVerb("stats", "Show how long commands take: half of the runs, 95 and 99 of a hundred end within these times", call.words, (program) => {
    program.option("--json", "print as JSON");
  });
  if ("help" in parsed) {
    printHelp(parsed.help, call.terminal);
    return Exit.Ok;
  }
  const { settings, notice } = readSettings({ cwd: process.cwd(), env: process.env, flags: call.flags });
  if (notice !== undefined) call.terminal.say(`${call.terminal.colors.yellow("!")} ${notice}\n`);
  const tasks = openTasks(settings, silentLog);
  const stats = await tasks.history.stats();
  await tasks.close();
  if (parsed.options.json === true) call.terminal.print(`${JSON.stringify(stats, null, 2)}\n`);
  else call.terminal.print(stats.length === 0 ? "Nothing has run yet.\n" : statsTable(stats, widthFor(call.terminal)));
  return Exit.Ok;
}
