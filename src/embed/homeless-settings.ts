import path from "node:path";
import type { ServerIdentity } from "../mcp/parts.ts";
import { deferralFrom } from "../settings/from-environment.ts";
import { defaultGraceSeconds, type HomelessSettings, projectId } from "../settings/settings.ts";
import { isStoreFile, memoryStore } from "../store/open.ts";
import { defaultLimits, defaultQuestionMs } from "../task/limits.ts";
import type { CheckedOptions } from "./server-options.ts";

/** The options with every default filled in. Nothing is read, neither from a file nor from the environment. */
export function toHomelessSettings(options: CheckedOptions, identity: ServerIdentity, cwd: string): HomelessSettings {
  const { deferral = {}, hosts = {}, toolPrefix = "", prompts = true, followUpTools = true } = options;
  const { errorsAsCompleted = false, logLevel = "warn", store: kept = memoryStore } = options;
  const { graceSeconds = defaultGraceSeconds, questionSeconds = defaultQuestionMs / 1000 } = options;
  const limits = { ...defaultLimits, ...options.limits };
  const { project = projectOf(identity), work = true, concurrency, taskTtlMs } = options;
  const store = isStoreFile(kept) ? path.resolve(cwd, kept) : kept;
  return {
    ...identity,
    store,
    queue: options.queue,
    project,
    worksHere: work,
    concurrency,
    taskTtlMs,
    environment: {},
    toolPrefix,
    logLevel,
    isDebug: false,
    deferral: deferralFrom({}, deferral),
    hosts,
    hostName: undefined,
    followUpTools,
    errorsAsCompleted,
    graceSeconds,
    questionSeconds,
    limits,
    prompts,
    auth: { access: options.auth?.access ?? [], listUngranted: false },
    folder: isStoreFile(store) ? path.dirname(store) : cwd,
    config: {
      name: identity.name,
      toolPrefix,
      prompts,
      followUpTools,
      errorsAsCompleted,
      logLevel,
      deferral,
      hosts,
      graceSeconds,
      questionSeconds,
      limits,
      facts: { version: identity.version },
    },
  };
}

/** Without the option `project`, the tasks in a file belong to the servers of this name, wherever they are started. */
function projectOf({ name }: ServerIdentity): string {
  return projectId(["a server in a program", name]);
}
