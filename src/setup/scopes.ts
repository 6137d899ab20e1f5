import { existsSync } from "node:fs";
import { formats } from "./change.ts";
import { readConfigFile } from "./config-file.ts";
import { isTrackedByGit } from "./git-index.ts";
import { fileOf, type SetupHost } from "./host.ts";
import { hosts } from "./hosts/index.ts";
import type { Machine } from "./machine.ts";
import type { WrapTarget } from "./wrap/wrap-file.ts";

/** Every file of this user in which hosts have servers, and what setup does not change there. */
export interface Scopes {
  readonly targets: readonly WrapTarget[];
  /** Folders that a host has servers for, and that are not there. */
  readonly missingFolders: readonly string[];
  /** Files of other hosts in those folders. */
  readonly projectFiles: readonly HostFile[];
  /** Files of the machine's administrator. */
  readonly managedFiles: readonly HostFile[];
}

interface HostFile {
  readonly host: SetupHost;
  readonly file: string;
}

/**
 * Finds the files of these hosts: the user's own, and the project's in each folder that a user's file names. Claude Code
 * keeps a list of the folders in which it was used.
 */
export function findUserScopes(chosen: readonly SetupHost[], machine: Machine): Scopes {
  const own = chosen.flatMap((host): WrapTarget[] =>
    userFilesOf(host, machine).map((file) => ({ host, scope: "user", file })),
  );
  const folders = chosen.flatMap((host) => foldersOf(host, machine).map((folder) => ({ host, folder })));
  const [there, missing] = [
    folders.filter(({ folder }) => machine.isThere(folder)),
    folders.filter(({ folder }) => !machine.isThere(folder)),
  ];
  const projects = there.flatMap(({ host, folder }): WrapTarget[] => {
    const file = host.projectFile?.({ ...machine, project: folder });
    return file === undefined || !existsSync(file) ? [] : [toProjectTarget(host, file)];
  });
  const targets = firstOfEach([...own, ...projects]);
  const isTarget = (file: string) => targets.some((target) => target.file === file);
  const others = there.flatMap(({ folder }) => projectFilesIn(folder, machine));
  return {
    targets,
    missingFolders: [...new Set(missing.map(({ folder }) => folder))],
    projectFiles: firstOfEach(others).filter(({ file }) => !isTarget(file)),
    managedFiles: chosen.flatMap((host) => {
      const file = host.managedFile?.(machine);
      return file !== undefined && machine.isThere(file) ? [{ host, file }] : [];
    }),
  };
}

/** The file of a project, which may be shared with everybody who has its repository. */
export function toProjectTarget(host: SetupHost, file: string): WrapTarget {
  return { host, scope: "project", file, isTracked: isTrackedByGit(file) };
}

export function firstOfEach<T extends { readonly file: string }>(targets: readonly T[]): T[] {
  return targets.filter(({ file }, index) => targets.findIndex((other) => other.file === file) === index);
}

function userFilesOf(host: SetupHost, machine: Machine): string[] {
  const more = (host.moreUserFiles?.(machine) ?? []).filter((file) => machine.isThere(file));
  return [...new Set([host.userFile(machine), ...more])];
}

/** None for a file that cannot be understood: whoever opens it says so. */
function foldersOf(host: SetupHost, machine: Machine): string[] {
  if (host.folderPlaces === undefined) return [];
  try {
    const config = formats[host.format].read(readConfigFile(host.userFile(machine)).text);
    return host.folderPlaces(config).flatMap(({ folder }) => (/^(?:[/\\]|[a-z]:)/i.test(folder) ? [folder] : []));
  } catch {
    return [];
  }
}

function projectFilesIn(folder: string, machine: Machine): HostFile[] {
  return hosts.flatMap((host) => {
    const file = fileOf(host, "project", { ...machine, project: folder });
    return file !== undefined && machine.isThere(file) ? [{ host, file }] : [];
  });
}
