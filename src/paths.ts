import {
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { homedir } from "node:os";
import path from "node:path";
import { RuntimeError } from "./errors.ts";
import { thisProgram } from "./program/program.ts";
import { ownFolder } from "./system/own-module.ts";
import { system } from "./system/system.ts";

/** Everything Meanwhile keeps on a machine lives in one folder of its user. */
export interface Home {
  readonly folder: string;
  readonly configFile: string;
  readonly tokenFile: string;
  /** The ID of the home; missing where it is derived from the token. */
  readonly idFile: string;
  /** How long hosts wait, as learned from calls that they gave up. */
  readonly hostsFile: string;
  readonly tasksFile: string;
  readonly workerLog: string;
  readonly daemonLog: string;
  /** The last reports of `meanwhile diagnose`. */
  readonly reportsFolder: string;
  /** What help and completion show of commands, as they were last loaded. */
  readonly catalogFolder: string;
  /** What upstreams have given us to sign in with. */
  readonly upstreamsFolder: string;
  /** Sockets, locks and records of daemons. */
  readonly runFolder: string;
  /** What is told apart by its fingerprint, and must not be guessed from it, is said after this. */
  readonly saltFile: string;
  /** The socket of the bundled commands alone. */
  readonly packSocket: string;
  /** What the bundled commands keep. */
  readonly packFile: string;
  /** The launcher that entries of hosts name; on Windows with `.cmd` and `-launcher.cjs`. */
  readonly launcher: string;
}

/** The variables of a process, by name. */
export type ProcessEnvironment = Readonly<Record<string, string | undefined>>;

/** The user's own folder, as these variables name it, or else the operating system. */
export function userFolder(env: ProcessEnvironment): string {
  return (system.platform === "win32" ? env.USERPROFILE : env.HOME) || homedir();
}

/** Names the home folder and what is in it; touches nothing. */
export function homeAt(env: ProcessEnvironment): Home {
  const folder = path.resolve(env[thisProgram.variable("HOME")] || path.join(userFolder(env), thisProgram.homeName));
  return {
    folder,
    configFile: path.join(folder, "config.json"),
    tokenFile: path.join(folder, "token"),
    idFile: path.join(folder, "home-id"),
    hostsFile: path.join(folder, "hosts.json"),
    tasksFile: path.join(folder, "tasks.db"),
    workerLog: path.join(folder, "worker.log"),
    daemonLog: path.join(folder, "daemon.log"),
    reportsFolder: path.join(folder, "reports"),
    catalogFolder: path.join(folder, "cache", "catalog"),
    upstreamsFolder: path.join(folder, "upstreams"),
    runFolder: path.join(folder, "run"),
    saltFile: path.join(folder, "run", "salt"),
    packSocket: path.join(folder, "mcp.sock"),
    packFile: path.join(folder, "pack.db"),
    launcher: path.join(folder, "bin", thisProgram.name),
  };
}

/** The home of this user. Throws before anything in it is read when others may have had their hands in it. */
export function openHome(env: ProcessEnvironment): Home {
  const home = homeAt(env);
  refuse(refusalOfHome(home));
  return home;
}

/** Makes the home folder, readable by its user alone. */
export function ensureHome(home: Home): void {
  refuse(refusalOfHome(home));
  mkdirSync(home.folder, { recursive: true, mode: 0o700 });
  // The home itself may be a link: its user has named it.
  system.ensurePrivateFolder(realpathSync(home.folder));
}

/**
 * Returns a check that is true when the home folder was there before and is gone now. A new folder in its place would
 * hide that the home was moved away.
 */
export function createGoneCheck(home: Home): () => boolean {
  let wasThere = existsSync(home.folder);
  return () => {
    const isThere = existsSync(home.folder);
    wasThere ||= isThere;
    return wasThere && !isThere;
  };
}

/** The home's salt, known to nobody else; empty where nothing was ever served. */
export function readSalt(home: Home): string {
  try {
    return readFileSync(home.saltFile, "utf8");
  } catch {
    return "";
  }
}

/** Makes the home's salt, where there is none; of two makers the first one wins. */
export function ensureSalt(home: Home): void {
  if (readSalt(home) !== "") return;
  // Loading it takes long, and this happens once in the life of a home.
  const { randomBytes } = process.getBuiltinModule("node:crypto");
  const aside = `${home.saltFile}.${process.pid}`;
  try {
    ensureHome(home);
    writePrivately(aside, randomBytes(32).toString("base64url"));
    try {
      linkSync(aside, home.saltFile);
    } finally {
      rmSync(aside, { force: true });
    }
  } catch {
    // Somebody else has made it; an unusable home is reported by whoever needs it.
  }
}

/** Throws what a refusal says, where there is one. */
export function refuse(refusal: string | undefined): void {
  if (refusal !== undefined) throw new RuntimeError("HOME_UNUSABLE", refusal);
}

/**
 * Says why nothing of a home may be read; undefined when it is this user's alone, or not there. What a home holds is
 * code that is run (command folders in its config, compiled code), secrets, and sockets that are trusted: it has to be
 * this user's, and no one else may write it.
 */
export function refusalOfHome(home: Home): string | undefined {
  const cure = `set ${thisProgram.variable("HOME")} to a folder of your own`;
  const inside = [
    ...[home.configFile, home.tokenFile, home.idFile, home.tasksFile, home.upstreamsFolder, home.runFolder],
    ...[path.dirname(home.launcher), home.launcher],
  ];
  const logs = [home.workerLog, home.daemonLog];
  const databases = [home.tasksFile, home.packFile].flatMap((file) =>
    ["-wal", "-shm", "-journal"].map((ending) => `${file}${ending}`),
  );
  const others = [
    home.packFile,
    ...databases,
    path.dirname(home.catalogFolder),
    home.catalogFolder,
    home.reportsFolder,
    ...logs,
    home.packSocket,
    home.hostsFile,
  ];
  return system.refusalOf([
    ...[home.folder, ...inside].map((file) => ({ file, isRootTrusted: file !== home.folder, cure })),
    // Earlier versions, and Node for its cache, have made some of these with whatever the umask left.
    ...others.map((file) => ({ file, isRootTrusted: true, mayBeShared: true, cure })),
  ]);
}

/** True when a folder for compiled code is this user's alone; anything in it is run. */
export function isOwnCache(folder: string): boolean {
  const rules = [path.dirname(folder), folder].map((file) => ({ file, isRootTrusted: false, cure: "" }));
  return system.refusalOf(rules) === undefined;
}

/** Returns the folder of this package. Of a bundle it is a folder that has none of the package's files. */
export function packageFolder(): string {
  ownPackage ??= path.resolve(ownFolder(), "..");
  return ownPackage;
}

let ownPackage: string | undefined;

/** True for a command that comes with Meanwhile, built or as its source, whichever folder it was found through. */
export function isBundledFile(file: string): boolean {
  const real = toReal(file);
  return ["dist/commands", "commands"].some((folder) =>
    real.startsWith(`${toReal(path.join(packageFolder(), folder))}${path.sep}`),
  );
}

/** Where links lead; what is not there is where its name says. */
export function toReal(file: string): string {
  return existsSync(file) ? realpathSync(file) : file;
}

/** Puts a file of this user's alone in its place, whole or not at all. */
export function writePrivately(file: string, text: string, mode = 0o600): void {
  mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
  const aside = `${file}.${process.pid}`;
  writeFileSync(aside, text, { mode });
  renameSync(aside, file);
}

/** A longer config is none. */
const maxConfigBytes = 1024 * 1024;

/** The text of a config file. Throws, before it is read, when it is too long to be one. */
export function readConfigText(file: string): string {
  refuseLongConfig(file);
  return readFileSync(file, "utf8");
}

/** Throws when a config file is too long to be one. */
export function refuseLongConfig(file: string): void {
  const { size } = statSync(file);
  if (size > maxConfigBytes)
    throw new RuntimeError(
      "CONFIG_INVALID",
      `${file} has ${size} bytes, and a config has at most ${maxConfigBytes}; take out what is no setting.`,
    );
}

/**
 * Where a session works, as its client says; undefined where that is nowhere: programs with a window start their
 * servers in `/`.
 */
export function toWorkingFolder(said: unknown): string | undefined {
  if (typeof said !== "string" || !path.isAbsolute(said) || said.includes("\0")) return undefined;
  const folder = path.resolve(said);
  return folder === path.parse(folder).root ? undefined : folder;
}
