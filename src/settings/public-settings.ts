import type { DeferralConfig } from "../config.ts";
import { isPackFolder } from "../project/project.ts";
import type { DeferralRules } from "../task/deferral.ts";
import type { Settings } from "./settings.ts";

/**
 * The part of the settings that a command may see: each under the name that a config file has for it, and under `facts`
 * what cannot be set there.
 */
export function publicSettings(settings: Settings): Readonly<Record<string, unknown>> {
  const {
    home,
    mcp: _hook,
    version,
    store,
    project,
    daemon,
    configFile,
    commandFolders,
    isDebug,
    hostName,
    deferral,
    environment: _marks,
    bundled,
    ...others
  } = settings;
  const { env: _names, named: env, ...process } = daemon;
  return {
    ...others,
    commands: commandFolders.filter((folder) => !isPackFolder(folder)),
    ...(bundled !== undefined && { bundled }),
    env,
    deferral: toConfig(deferral),
    facts: { version, home: home.folder, configFile, storeFile: store, project, daemon: process, hostName, isDebug },
  };
}

function toConfig(rules: DeferralRules): DeferralConfig {
  const { isAuto, tools, requiresClientTasks, isUnsolicited, patienceMs, longFromMs, keepInlineMs } = rules;
  return {
    auto: isAuto,
    ...(tools !== undefined && { tools: [...tools] }),
    requireClientTasks: requiresClientTasks,
    unsolicited: isUnsolicited,
    patienceSeconds: patienceMs / 1000,
    longSeconds: longFromMs / 1000,
    keepInlineSeconds: keepInlineMs / 1000,
  };
}
