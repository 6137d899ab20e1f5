import { thisProgram } from "../../program/program.ts";
import type { Terminal } from "../terminal.ts";

export interface WorkerFacts {
  readonly version: string;
  readonly commands: number;
  /** How many tasks it runs at a time. */
  readonly places: number;
  readonly project: string;
  /** Where the tasks are, in words for a person. */
  readonly store: string;
}

/** What a worker says of itself when it begins. */
export function workerBanner({ version, commands, places, project, store }: WorkerFacts, { colors }: Terminal): string {
  const { bold, dim } = colors;
  const work = `runs tasks of ${commands} command${commands === 1 ? "" : "s"}, ${places} at a time`;
  return `\n${bold(thisProgram.title)} ${version} ${work}\n\n${dim(`  Project ${project} · ${store} · Ctrl-C stops it.`)}\n\n`;
}
