const names = ["task_result", "task_status", "task_cancel", "task_list", "task_answer"] as const;

/** A follow-up tool's name, as it is listed. */
export function followUpName(name: string, toolPrefix: string): string {
  return toolPrefix === "" ? name : `${toolPrefix}_${name}`;
}

/** The names that follow-up tools take, where there are some. */
export function followUpNames(settings: { readonly followUpTools: boolean; readonly toolPrefix: string }): string[] {
  return settings.followUpTools ? names.map((name) => followUpName(name, settings.toolPrefix)) : [];
}
