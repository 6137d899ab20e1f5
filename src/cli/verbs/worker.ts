import { Exit, UsageError } from "../../errors.ts";
import { flag } from "../completion/grammar.ts";
import { projectFlags } from "../flags.ts";
import { toProjectFlags, type Verb } from "../verb.ts";

export const verb: Verb = {
  description:
    "Run the tasks of this project, and nothing else: as many workers as you like, on as many machines as share its store",
  get flags() {
    return [flag("--concurrency <number>", "so many tasks at a time (default 16)"), ...projectFlags()];
  },
  async run(typed) {
    const { concurrency } = typed.options;
    const places = concurrency === undefined ? undefined : Number(concurrency);
    const { isConcurrency, maxConcurrency } = await import("../../task/limits.ts");
    if (places !== undefined && !isConcurrency(places))
      throw new UsageError(
        `--concurrency must be a whole number from 1 to ${maxConcurrency}, not ${String(concurrency)}.`,
      );
    const { loadSettings } = await import("../../settings/settings.ts");
    const settings = await loadSettings({
      cwd: typed.context.cwd,
      env: typed.context.env,
      flags: { ...toProjectFlags(typed), ...(places !== undefined && { concurrency: places }) },
    });
    const { workUntilStopped } = await import("../entries/serve-in-process.ts");
    await workUntilStopped(settings, typed);
    return Exit.Ok;
  },
};
