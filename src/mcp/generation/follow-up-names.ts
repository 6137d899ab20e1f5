import type { FollowUpTool } from "../../auth/gate.ts";

const names = [
  "task_result",
  "task_status",
  "task_cancel",
  "task_list",
  "task_answer",
] as const satisfies readonly FollowUpTool[];

/** A follow-up tool's name, as it is listed. */
export function followUpName(name: string, toolPrefix: string): string {
  return toolPrefix === "" ? name : `${toolPrefix}_${name}`;
}

interface FollowUpSettings {
  readonly followUpTools: boolean;
  readonly toolPrefix: string;
}

/** The follow-up tools by the names they are listed under. */
export function followUpsByName({ followUpTools, toolPrefix }: FollowUpSettings): ReadonlyMap<string, FollowUpTool> {
  return new Map(followUpTools ? names.map((name) => [followUpName(name, toolPrefix), name]) : []);
}

/** The names that follow-up tools take, where there are some. */
export function followUpNames(settings: FollowUpSettings): string[] {
  return [...followUpsByName(settings).keys()];
}
