import { Exit, type ExitCode } from "../../errors.ts";
import { projectConfigOf } from "../../settings/load-config.ts";
import { loadSettings } from "../../settings/settings.ts";
import type { VerbCall } from "../verb.ts";

/** For a front that meets a config file written as code: prints the settings that name the project. */
export async function run(call: Omit<VerbCall, "words">): Promise<ExitCode> {
  await call.protectStdout();
  // Refuses what is wrong with any of it, before a daemon is started for it.
  const { configFile, home } = await loadSettings({ cwd: call.context.cwd, env: call.context.env, flags: call.flags });
  call.terminal.print(JSON.stringify(configFile === undefined ? {} : await projectConfigOf(home, configFile)));
  return Exit.Ok;
}
