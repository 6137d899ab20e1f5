import { thisProgram } from "../../program/program.ts";
import type { Settings } from "../../settings/settings.ts";
import { describeStore } from "../../store/open.ts";
import { taskPlaces } from "../../task/limits.ts";
import type { Terminal } from "../terminal.ts";

/** What a worker says of itself when it begins. */
export function workerBanner(
  { settings, commands }: { readonly settings: Settings; readonly commands: number },
  { colors }: Terminal,
): string {
  const { bold, dim } = colors;
  const places = taskPlaces(settings.concurrency).total;
  return `\n${bold(thisProgram.title)} ${settings.version} runs tasks of ${commands} command${commands === 1 ? "" : "s"}, ${places} at a time\n\n${dim(
    `  Project ${settings.project} · ${describeStore(settings.store)} · Ctrl-C stops it.`,
  )}\n\n`;
}
