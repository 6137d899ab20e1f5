import type { Logger } from "../log.ts";
import type { ProcessEnvironment } from "../paths.ts";
import { countedNames, projectParts } from "../project/project.ts";
import { storeNames } from "../project/stored-project.ts";
import { lookForNames, marksOfWrap, markValues } from "../settings/names-read.ts";
import { type Settings, sourcesOf } from "../settings/settings.ts";
import type { EnvironmentMarks } from "../task/task.ts";

/**
 * The environment variables that are part of a daemon's key, as the project's files name them now. Sessions with other
 * values of these variables are served by another daemon.
 */
export class CountedVariables {
  readonly #settings: Settings;
  readonly #log: Logger;
  /** A copy from the start: commands may write to their environment. */
  readonly #env: ProcessEnvironment;
  names: readonly string[];
  environment: EnvironmentMarks;

  constructor(settings: Settings, env: ProcessEnvironment, log: Logger) {
    this.#settings = settings;
    this.#log = log;
    this.#env = { ...env };
    this.names = settings.daemon.env;
    this.environment = settings.environment;
  }

  /**
   * Reads again which variables the code in these folders uses. False when they are not those in this daemon's key:
   * the values that its sessions have of the others are unknown, so the code must not be loaded here.
   */
  areStill(folders: readonly string[], onOthers = () => {}): boolean {
    const { home, configFile, daemon } = this.#settings;
    const sources = sourcesOf(this.#settings);
    const found = lookForNames(folders, configFile);
    storeNames(home, projectParts(sources, configFile), found.names);
    this.names = countedNames(daemon.named, found.names);
    this.environment = { ...markValues(home, this.#env, this.names), ...marksOfWrap(home, sources.wrap) };
    if (!found.isWhole)
      this.#log.warn(
        "not every file was looked at for the variables it reads; name those that commands read in the setting `env`",
      );
    if (this.names.join() === daemon.env.join()) return true;
    const differing = [
      ...this.names.filter((name) => !daemon.env.includes(name)),
      ...daemon.env.filter((name) => !this.names.includes(name)),
    ];
    this.#log.info(
      `the code reads other variables than when this daemon started: ${differing.join(", ")}; its sessions go to the daemons of their values`,
    );
    onOthers();
    return false;
  }
}
