import { statSync } from "node:fs";
import path from "node:path";
import { UsageError } from "../../errors.ts";
import { readSettings } from "../../settings/settings.ts";
import type { Tasks } from "../../task/tasks.ts";
import { clean } from "../terminal.ts";
import type { TypedVerb } from "../verb.ts";

/**
 * Returns the project that `--project` names: that of a folder where the text is a path, otherwise the text itself.
 * Throws for a path without a folder.
 */
export function toProjectName(text: string, { context, flags }: Pick<TypedVerb, "context" | "flags">): string {
  if (!isPath(text)) return text;
  const { env } = context;
  const cwd = path.resolve(context.cwd, text);
  if (statSync(cwd, { throwIfNoEntry: false })?.isDirectory() !== true)
    throw new UsageError(
      `--project: there is no folder ${clean(text)}; give a project's folder, or its name as \`tasks show\` prints it.`,
    );
  return readSettings({ cwd, env, flags }).settings.project;
}

/** Names of projects in npm style (`@acme/mail`) are names. */
function isPath(text: string): boolean {
  return text === "." || text === ".." || /^\.{1,2}[\\/]/.test(text) || path.isAbsolute(text);
}

/** Returns a sentence if no task of this user is of the named project: then its name is probably mistyped. */
export async function describeEmptyProject(
  { engine, localKey }: Tasks,
  { text, project }: { readonly text: string; readonly project: string },
): Promise<string | undefined> {
  const own = await engine.list(localKey, { project, withCalls: true, limit: 1 });
  if (own.tasks.length > 0) return undefined;
  const newest = await engine.list(localKey, { withCalls: true, limit: 100 });
  const others = [...new Set(newest.tasks.map((task) => task.project))];
  const known = others.length === 0 ? "" : ` The newest tasks are of ${others.join(", ")}.`;
  return clean(`--project: no task of this home is of the project ${text}.${known}`);
}
