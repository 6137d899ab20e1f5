import path from "node:path";

/** What setup needs to know of the computer it runs on; tests describe others. */
export interface Machine {
  readonly platform: "linux" | "darwin" | "win32";
  /** The user's folder. */
  readonly home: string;
  /** The folder that --project means. */
  readonly project: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  isThere(file: string): boolean;
  /** The names in a folder; none when there is no such folder. */
  list(folder: string): readonly string[];
}

/** Joins paths as the machine in question writes them. */
export function join(machine: Machine, ...parts: readonly string[]): string {
  return rulesOf(machine).join(...parts);
}

/** A folder named by a variable, or its usual place. */
export function folderFrom(machine: Machine, variable: string, ...usual: readonly string[]): string {
  return machine.env[variable] || join(machine, ...usual);
}

/** Where programs keep their settings: ~/.config, ~/Library/Application Support, %APPDATA%. */
export function settingsFolder(machine: Machine): string {
  if (machine.platform === "win32") return folderFrom(machine, "APPDATA", machine.home, "AppData", "Roaming");
  if (machine.platform === "darwin") return join(machine, machine.home, "Library", "Application Support");
  return folderFrom(machine, "XDG_CONFIG_HOME", machine.home, ".config");
}

/** The first of these files that is there, or the first. */
export function firstThere(machine: Machine, files: readonly [string, ...string[]]): string {
  return files.find((file) => machine.isThere(file)) ?? files[0];
}

/** True when a program of this name is on the PATH. */
export function isOnPath(machine: Machine, program: string): boolean {
  const { delimiter } = rulesOf(machine);
  const endings = machine.platform === "win32" ? [".exe", ".cmd", ".bat"] : [""];
  const folders = (machine.env.PATH ?? machine.env.Path ?? "").split(delimiter).filter(Boolean);
  return folders.some((folder) =>
    endings.some((ending) => machine.isThere(join(machine, folder, `${program}${ending}`))),
  );
}

function rulesOf(machine: Machine): path.PlatformPath {
  return machine.platform === "win32" ? path.win32 : path.posix;
}
