import { defineCommand } from "meanwhile";
import { z } from "zod";
import { writeAtOnce } from "../../_pack/database.ts";
import { showName } from "../../_pack/paths.ts";
import { openReach } from "../../_pack/reach.ts";
import { withMonitor } from "../_schema.ts";

export default defineCommand({
  summary: "Take a folder's priority away",
  input: z.object({ path: z.string().describe("The folder, as `monitor priority show` shows it") }),
  output: z.object({
    path_removed: z.string(),
    not_found: z.boolean(),
  }),
  effects: "write",
  idempotent: true,
  examples: ["~/notes"],
  summarize: ({ path_removed, not_found }) =>
    `${path_removed} ${not_found ? "had no priority" : "has no priority any more"}`,
  run({ path }, task) {
    // A folder that is gone, or that is no longer allowed, can still be taken off.
    const real = openReach(task).locate(path);
    return withMonitor(task.home, (db) => {
      const { changes } = writeAtOnce(db, () =>
        db.prepare("delete from monitor_priority_settings where path = ?").run(real),
      );
      return { path_removed: showName(real), not_found: changes === 0 };
    });
  },
});
