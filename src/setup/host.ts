import { isOnPath, join, type Machine } from "./machine.ts";

/** How a host starts the server. */
export interface Launch {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** Our entry, in the words of one host. */
export type Entry = Readonly<Record<string, unknown>>;

/** The words for a server that has an address; those that are missing are not written. */
interface RemoteShape {
  readonly url: "url" | "httpUrl" | "serverUrl";
  readonly headers: "headers" | "http_headers";
  readonly type?: string;
  readonly sseType?: string;
}

/** What differs between MCP hosts; one file each in hosts/. */
export interface SetupHost {
  readonly id: string;
  readonly title: string;
  /** Its program, when it has one that a terminal can start. */
  readonly program?: string;
  /** What is on the disk once it is installed. */
  signs(machine: Machine): readonly string[];
  readonly format: "json" | "toml";
  /** The config file for everything this user does. */
  userFile(machine: Machine): string;
  /** The config file of one project, when the host has such a thing. */
  projectFile?(machine: Machine): string;
  /** The keys that lead to the servers. */
  place(config: unknown): readonly string[];
  toEntry(launch: Launch): Entry;
  /** How it writes a server that has an address. */
  readonly remote: RemoteShape;
  /** Where a user's file holds servers of single folders. */
  folderPlaces?(config: unknown): readonly FolderPlace[];
  /** Further files of this user that are there. */
  moreUserFiles?(machine: Machine): readonly string[];
  /** The file that the administrator of a machine writes. */
  managedFile?(machine: Machine): string;
  /** What the person does next. */
  readonly next: string;
  /** What has to be allowed before a project's entry is used. */
  readonly projectNext?: string;
}

/** The keys that lead to the servers of one folder, in a file that has those of several. */
export interface FolderPlace {
  readonly folder: string;
  readonly keys: readonly string[];
}

export type SetupScope = "user" | "project";

export function isInstalled(host: SetupHost, machine: Machine): boolean {
  return (
    host.signs(machine).some((sign) => machine.isThere(sign)) ||
    (host.program !== undefined && isOnPath(machine, host.program))
  );
}

/** The host's file for a scope; nothing when it has none. */
export function fileOf(host: SetupHost, scope: SetupScope, machine: Machine): string | undefined {
  return scope === "user" ? host.userFile(machine) : host.projectFile?.(machine);
}

/** The shape most hosts share: command, args and, when needed, env. */
export function plainEntry({ command, args, env }: Launch): Entry {
  return { command, args: [...args], ...(Object.keys(env).length > 0 && { env }) };
}

/** The same, with its transport named. */
export function stdioEntry(launch: Launch): Entry {
  return { type: "stdio", ...plainEntry(launch) };
}

/** A file below the user's folder. */
export const inHome =
  (...parts: readonly string[]) =>
  (machine: Machine): string =>
    join(machine, machine.home, ...parts);

/** A file below the project. */
export const inProject =
  (...parts: readonly string[]) =>
  (machine: Machine): string =>
    join(machine, machine.project, ...parts);
