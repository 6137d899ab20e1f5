import type { DeferralConfig } from "../config.ts";
import { isPackFolder } from "../project/project.ts";
import { isReference } from "../project/variable-references.ts";
import { shownStore } from "../store/open.ts";
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
    serverVersion,
    store,
    queue: _queue,
    project,
    daemon,
    configFile,
    workingFolder: _folder,
    commandFolders,
    isDebug,
    hostName,
    deferral,
    bundled,
    upstreams,
    upstreamPrefix,
    leftOut: _leftOut,
    isWrap,
    worksHere: _works,
    concurrency: _concurrency,
    ...others
  } = without(settings, "environment");
  const { isPackAlone, named: env, idleMs } = daemon;
  return {
    ...others,
    version: serverVersion,
    commands: commandFolders.filter((folder) => !isPackFolder(folder)),
    ...(bundled !== undefined && { bundled }),
    env,
    ...(Object.keys(upstreams).length > 0 && { upstreams: withoutValues(upstreams) }),
    ...(upstreamPrefix !== undefined && { upstreamPrefix }),
    deferral: toConfig(deferral),
    facts: {
      ...{
        version,
        home: home.folder,
        configFile,
        storeFile: shownStore(store),
        project,
        daemon: {
          get key() {
            return daemon.key;
          },
          ...{ isPackAlone, idleMs },
        },
        hostName,
        isDebug,
      },
      isWrap,
    },
  };
}

/** A copy without one field, whose getter is not called. */
function without<T extends object, Name extends keyof T>(all: T, name: Name): Omit<T, Name> {
  const names = Object.keys(all).filter((other) => other !== name) as (keyof T)[];
  return Object.fromEntries(names.map((other) => [other, all[other]])) as Omit<T, Name>;
}

/** Commands are anybody's code: what an upstream is told in clear is not for them. */
function withoutValues(upstreams: Settings["upstreams"]): Settings["upstreams"] {
  const hide = (values: Readonly<Record<string, string>>) =>
    Object.fromEntries(Object.entries(values).map(([name, value]) => [name, isReference(value) ? value : "…"]));
  const shown = Object.entries(upstreams).map(([name, { env, headers, oauth, ...others }]) => {
    const { clientSecret, ...rest } = oauth ?? {};
    const secret = clientSecret === undefined ? {} : hide({ clientSecret });
    return [
      name,
      {
        ...others,
        ...(env !== undefined && { env: hide(env) }),
        ...(headers !== undefined && { headers: hide(headers) }),
        ...(oauth !== undefined && { oauth: { ...rest, ...secret } }),
      },
    ];
  });
  return Object.fromEntries(shown);
}

function toConfig(rules: DeferralRules): DeferralConfig {
  const { isAuto, tools, requiresClientTasks, isUnsolicited, patienceMs, longFromMs, keepInlineMs, learns } = rules;
  return {
    auto: isAuto,
    ...(tools !== undefined && { tools: [...tools] }),
    requireClientTasks: requiresClientTasks,
    unsolicited: isUnsolicited,
    patienceSeconds: patienceMs / 1000,
    longSeconds: longFromMs / 1000,
    keepInlineSeconds: keepInlineMs / 1000,
    learn: learns,
  };
}
