import { CommandError, defineCommand } from "meanwhile";
import { z } from "zod";
import { writeAtOnce } from "../../_pack/database.ts";
import { folderOf, showName } from "../../_pack/paths.ts";
import { openReach } from "../../_pack/reach.ts";
import { withMonitor } from "../_schema.ts";

const put =
  "insert into monitor_priority_settings (path, priority) values (?, ?) on conflict (path) do update set priority = excluded.priority";

export default defineCommand({
  summary: "Set how much the files of a folder count",
  description: "The next sync gives the files their new score, without reading them again.",
  input: z.object({
    path: z.string().describe("The folder, e.g. ~/notes"),
    priority: z.number().min(0).max(1_000_000).describe("Its number, e.g. 100"),
  }),
  output: z.object({
    path_stored: z.string(),
    new_priority: z.number(),
    old_priority: z.number().nullable(),
  }),
  effects: "write",
  idempotent: true,
  examples: ["~/notes 100"],
  summarize: ({ path_stored, new_priority, old_priority }) =>
    `${path_stored} counts ${new_priority}${old_priority === null ? "" : `, before ${old_priority}`}`,
  run({ path, priority }, task) {
    const given = openReach(task).resolve(path);
    if (given.kind === "file" || given.kind === "other")
      throw new CommandError(
        `\`path\` ${given.shown} is not a folder; give the one that it lies in, ${showName(folderOf(given.path))}.`,
      );
    return withMonitor(task.home, (db) => {
      const before = db.prepare("select priority from monitor_priority_settings where path = ?").pluck();
      const old = writeAtOnce(db, () => {
        const known = before.get(given.path) as number | undefined;
        db.prepare(put).run(given.path, priority);
        return known;
      });
      return { path_stored: given.shown, new_priority: priority, old_priority: old ?? null };
    });
  },
});
