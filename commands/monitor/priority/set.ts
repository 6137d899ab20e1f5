import { CommandError, defineCommand } from "meanwhile";
import { z } from "zod";
import { writeAtOnce } from "../../_pack/database.ts";
import { readPriorities, readScoring, type ScoreSettings, scoreDefaults } from "../_priority.ts";
import { withMonitor } from "../_schema.ts";

const names = Object.keys(scoreDefaults) as (keyof ScoreSettings)[];
/** Larger factors and weights would only be a slip of the finger. */
const maxFactor = 1_000;
const maxFiles = 1_000_000_000;
const maxPriority = 1_000_000;
const ending = /^\.[^./\\\s*?]{1,50}$/;

export default defineCommand({
  summary: "Set how scores are made: factors, weights of endings, the lowest score, how many files are kept",
  description:
    "folder_factor (0.9): for each folder further down; underscore_factor (0.5): for each underscore a name begins with; only_underscore_factor (0.1): for the name _; " +
    ".md and other endings (1): their weight; minimum_priority (0): files that score less are not recorded; maximum_files (0: any number): beyond it, those that score lowest are forgotten. " +
    "The next sync of a folder goes by it.",
  input: z.object({
    name: z
      .string()
      .describe(
        "folder_factor, underscore_factor, only_underscore_factor, minimum_priority, maximum_files, or an ending such as .md",
      ),
    value: z.number().min(0).describe("Its number; for an ending, 1 takes the weight away"),
  }),
  output: z.object({ name: z.string(), new_value: z.number(), old_value: z.number() }),
  effects: "write",
  idempotent: true,
  complete: { name: () => names },
  examples: ["folder_factor 0.8", ".pdf 1.5", "maximum_files 100000"],
  summarize: ({ name, new_value, old_value }) => `${name} is ${new_value}, before ${old_value}`,
  run({ name: given, value }, task) {
    const name = check(given, value);
    return withMonitor(task.home, (db) => {
      const { settings, weights } = readScoring(db);
      const fallback = isSetting(name) ? scoreDefaults[name] : 1;
      const before = isSetting(name) ? settings[name] : (weights.get(name) ?? 1);
      writeAtOnce(db, () =>
        value === fallback
          ? db.prepare("delete from monitor_score_settings where name = ?").run(name)
          : db
              .prepare(
                "insert into monitor_score_settings (name, value) values (?, ?) on conflict (name) do update set value = excluded.value",
              )
              .run(name, value),
      );
      if (name === "minimum_priority" && value > 0 && readPriorities(db).length === 0)
        task.log.warn(
          "No folder has a priority, so every file scores 0 and the next sync forgets it; `monitor priority add` gives a folder one.",
        );
      return { name, new_value: value, old_value: before };
    });
  },
});

function isSetting(name: string): name is keyof ScoreSettings {
  return Object.hasOwn(scoreDefaults, name);
}

/** The name as it is kept; refuses what is no setting, and what cannot be its value. */
function check(given: string, value: number): string {
  const name = given.toLowerCase();
  if (!isSetting(name) && !ending.test(name))
    throw new CommandError(
      `\`name\` ${given} is neither a setting nor an ending; give an ending such as .md, or one of ${names.join(", ")}.`,
    );
  const most = name === "maximum_files" ? maxFiles : name === "minimum_priority" ? maxPriority : maxFactor;
  if (value > most) throw new CommandError(`\`value\` ${value} is too much for ${name}; it is at most ${most}.`);
  if (name === "maximum_files" && !Number.isInteger(value))
    throw new CommandError(`\`value\` ${value} is no whole number of files.`);
  return name;
}
