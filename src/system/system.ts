import type { Stats } from "node:fs";
import { createDarwin } from "./darwin.ts";
import { createLinux } from "./linux.ts";
import { createWindows } from "./windows.ts";

/** What Meanwhile asks of the operating system: one file a system, and nobody else knows which one it is. */
export interface System {
  readonly platform: "linux" | "darwin" | "win32";

  /** False for a process that has ended, also where whoever started it has not asked about it. */
  isAlive(pid: number): boolean;
  /** When this process began, in the system's own words. */
  ownStart(): string | undefined;
  /** Whether a process began then, because ids are given out again; undefined where the system does not tell. */
  beganAt(pid: number, start: string): boolean | undefined;
  /** Differs from one start of the machine to the next, where `ownStart` counts from there. */
  bootId(): string;
  /** Where an id means this process: containers share a machine, and cannot see each other's processes. */
  pidNamespace(): string;
  /** Every process that runs; none where they cannot be listed in time. */
  processes(): readonly RunningProcess[];
  /** Of these, who has inherited `mark`, a `NAME=value`, in its environment. */
  markedOf(pids: readonly number[], mark: string): readonly number[];
  /** Bytes that a process holds in memory; undefined where the system does not tell. */
  memoryOf(pid: number): Promise<number | undefined>;
  /** How often it may be asked that without being a load itself. */
  readonly memoryCheckMs: number;
  /** How a process is started that is ended with all it starts. */
  readonly ownGroup: { readonly detached: boolean; readonly windowsHide: true };
  /** Asks a process to end by a signal; where there are none, it is killed. */
  askToEnd(pid: number): void;
  /** The same for all of a group, by the process that leads it. */
  askGroupToEnd(pid: number): void;
  /** Kills a process and all it has started, when it leads a group; does nothing when they are gone, or not ours. */
  killGroup(pid: number): void;
  /** False when nearly all file descriptors of this process are taken; true where that cannot be known. */
  hasDescriptorsLeft(): boolean;

  /** Says why files must not be trusted: the first that is somebody else's, or that others may write. */
  refusalOf(rules: readonly FileRule[]): string | undefined;
  /** Says why a project's file or folder must not be loaded from. */
  refusalOfProjectFile(file: string): string | undefined;
  /** True for an open file that is its user's alone. */
  isPrivate(stat: Stats): boolean;
  /** Makes a folder for this user alone. Throws when it is a link or somebody else's: they could put things there. */
  ensurePrivateFolder(folder: string): void;

  /** Whether a socket may have this path. */
  fitsSocket(file: string): boolean;
  /** Where a daemon listens: at `file`, or where that cannot be. `last` is where its predecessor did. */
  placeSocket(file: string, last: string | undefined): string;
  /** A socket to listen on. `folder` is where it really lies, where its user may have made the way there a link. */
  ownSocket(name: string, folder?: string): OwnSocket;
  /** Says why a socket must not be talked to; undefined when it is this user's own, or not there. */
  refusalOfSocket(name: string): string | undefined;
  /** Others see the names of sockets, and may take one that is free: each side proves that it knows a secret. */
  readonly areSocketsSeen: boolean;
}

export interface RunningProcess {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
  /** Greater for who began later. */
  readonly startedAt: number;
}

export interface FileRule {
  readonly file: string;
  /** Root could do anything anyway; what it has put into a user's folder is fine. */
  readonly isRootTrusted: boolean;
  /** Only whose it is counts, not who else may write it. */
  readonly mayBeShared?: boolean;
  readonly cure: string;
}

/** A socket that this user alone can open. */
export interface OwnSocket {
  /** Has a server listen there. Throws when something else is in its place. */
  open(listen: (name: string) => Promise<void>): Promise<void>;
  /** False when it was taken away, or is somebody else's by now. */
  isThere(): boolean;
  /** Gives up its name, and the folder that was made for it. */
  remove(): void;
}

/** The system that this process runs on. */
export const system: System =
  process.platform === "win32" ? createWindows() : process.platform === "darwin" ? createDarwin() : createLinux();
