import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmdirSync,
  rmSync,
  type Stats,
  statSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { RuntimeError } from "../errors.ts";
import { thisProgram } from "../program/program.ts";
import { identityOf } from "./socket-file.ts";
import type { FileRule, OwnSocket, System } from "./system.ts";

/** What Linux and macOS have in common: files have an owner and a mode, sockets are files, processes are in groups. */
export const posix = {
  ownGroup: { detached: true, windowsHide: true },
  askToEnd: (pid) => send(pid, "SIGTERM"),
  // Below these there is no group of one process.
  askGroupToEnd: (pid) => void (pid > 1 && send(-pid, "SIGTERM")),
  killGroup,
  refusalOf: (rules) => {
    for (const rule of rules) {
      const refusal = refusalOfFile(rule);
      if (refusal !== undefined) return refusal;
    }
    return undefined;
  },
  refusalOfProjectFile,
  isPrivate: ({ uid, mode }) => isOurs(uid) && (mode & 0o077) === 0,
  ensurePrivateFolder,
  fitsSocket,
  placeSocket,
  ownSocket: (name: string, folder?: string) => new SocketFile(name, folder ?? path.dirname(name)),
  refusalOfSocket,
  areSocketsSeen: false,
} satisfies Partial<System>;

/** True while a process id is taken, be it by one that has ended and was not asked about. */
export function isTaken(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}

function killGroup(pid: number): void {
  // Below these there is no group of one process, but our own, or everybody.
  if (pid > 1) for (const target of [-pid, pid]) send(target, "SIGKILL");
}

/** Whoever is gone, or not ours any more, hears nothing. */
function send(target: number, signal: NodeJS.Signals): void {
  try {
    process.kill(target, signal);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "ESRCH" && code !== "EPERM") throw error;
  }
}

/** Descriptors that are kept for files of the work itself: its database, its log, what commands open. */
const keptDescriptors = 16;

/** Whether descriptors are left, where a folder lists those that are open. */
export function hasDescriptorsLeft(folder: string, most: () => number): boolean {
  try {
    return readdirSync(folder).length + keptDescriptors < most();
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "EMFILE";
  }
}

/** Asked of the process: in a container its user may have no name, and looking that up would fail. */
const ownUid = () => process.getuid?.() ?? -1;
export const isOurs = (uid: number) => uid === ownUid();
export const isTrusted = (uid: number, isRootTrusted: boolean) => isOurs(uid) || (isRootTrusted && uid === 0);
export const toMode = ({ mode }: Stats) => (mode & 0o7777).toString(8).padStart(4, "0");

/** What cannot even be looked at cannot be read either; whoever needs it says so. */
export function look(
  ask: (file: string, options: { throwIfNoEntry: false }) => Stats | undefined,
  file: string,
): Stats | undefined {
  try {
    return ask(file, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

function refusalOfFile({ file, isRootTrusted, mayBeShared = false, cure }: FileRule): string | undefined {
  const link = look(lstatSync, file);
  const facts = link?.isSymbolicLink() === true ? look(statSync, file) : link;
  if (link === undefined || facts === undefined) return undefined;
  const stranger = [
    link.isSymbolicLink() && !isTrusted(link.uid, true) ? link.uid : undefined,
    isTrusted(facts.uid, isRootTrusted) ? undefined : facts.uid,
  ];
  const uid = stranger.find((found) => found !== undefined);
  if (uid !== undefined)
    return `${file} belongs to another user (uid ${uid}, you are ${ownUid()}), so nothing in it was read; ${cure}.`;
  if (!mayBeShared && (facts.mode & 0o022) !== 0)
    return `${file} may be written by others (mode ${toMode(facts)}), so nothing in it was read; if what is there is yours, chmod go-w ${file}, or ${cure}.`;
  return undefined;
}

/**
 * A project may be shared by a group; what anybody may write, or what a stranger wrote, is nobody's word. A container
 * reads as root what its mounted volume's user wrote: that is taken where nobody else could have put it.
 */
function refusalOfProjectFile(file: string): string | undefined {
  const link = look(lstatSync, file);
  const facts = link?.isSymbolicLink() === true ? look(statSync, file) : link;
  if (link === undefined) return undefined;
  const danger = facts?.isDirectory() === true ? "what it holds would be run as you" : "would be run as you";
  const stranger = [link.uid, facts?.uid ?? ownUid()].find((uid) => !isTrusted(uid, true));
  const open = stranger === undefined || ownUid() !== 0 ? undefined : openFolderAbove(file);
  if (stranger !== undefined && (ownUid() !== 0 || open !== undefined)) {
    const where = open === undefined ? "" : ` below ${open}, where anybody may write`;
    return `${file} belongs to another user (uid ${stranger}, you are ${ownUid()})${where}, and ${danger}; work on a copy of your own, or have its owner changed.`;
  }
  if (facts !== undefined && (facts.mode & 0o002) !== 0)
    return `${file} may be written by anybody (mode ${toMode(facts)}), and ${danger}; read it through, then chmod o-w ${file}.`;
  return undefined;
}

/** The nearest folder above a file, by its name and by where links lead, that anybody may write. */
function openFolderAbove(file: string): string | undefined {
  const real = look(statSync, file) === undefined ? file : realpathSync(file);
  const above = [path.resolve(file), real].flatMap(foldersAbove);
  return above.find((folder) => ((look(statSync, folder)?.mode ?? 0) & 0o002) !== 0);
}

function foldersAbove(file: string): string[] {
  const parent = path.dirname(file);
  return parent === file ? [] : [parent, ...foldersAbove(parent)];
}

function ensurePrivateFolder(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const stat = lstatSync(folder);
  if (!stat.isDirectory()) throw new Error(`${folder} is not a folder`);
  if (!isOurs(stat.uid)) throw new Error(`${folder} belongs to another user`);
  if ((stat.mode & 0o077) !== 0) chmodSync(folder, 0o700);
}

/** Longer paths are cut off by the system without a word. */
export const maxSocketBytes = 100;

function fitsSocket(file: string): boolean {
  return Buffer.byteLength(file) <= maxSocketBytes;
}

/**
 * In the home or, where that path is too long, in a folder of this user's among the temporary ones. Its name is known
 * to everybody, so somebody else may have taken it; then a new folder is made.
 */
function placeSocket(file: string, last: string | undefined): string {
  if (fitsSocket(file)) return file;
  const name = path.basename(file);
  const known = [...(last === undefined || !isSpare(path.dirname(last)) ? [] : [path.dirname(last)]), usualFolder()];
  const folder = known.find((found) => fitsSocket(path.join(found, name)) && isPrivateFolder(found));
  return path.join(folder ?? makeSpare(name), name);
}

const usualFolder = () => path.join(tmpdir(), `${thisProgram.name}-${ownUid()}`);
const isSpare = (folder: string) => new RegExp(`^${thisProgram.name}-${ownUid()}-\\w{6}$`).test(path.basename(folder));

/** Of two temporary folders, the first whose path is short enough. */
function makeSpare(name: string): string {
  const usual = usualFolder();
  const isShort = fitsSocket(path.join(`${usual}-123456`, name));
  return mkdtempSync(`${isShort ? usual : path.join("/tmp", path.basename(usual))}-`);
}

/**
 * True for a folder of this user's alone, which is made where there is none; others may have put things into one that
 * they may write.
 */
function isPrivateFolder(folder: string): boolean {
  const stat = lstatSync(folder, { throwIfNoEntry: false });
  if (stat !== undefined && (stat.mode & 0o022) !== 0) return false;
  try {
    ensurePrivateFolder(folder);
    return true;
  } catch {
    return false;
  }
}

function refusalOfSocket(name: string): string | undefined {
  const stat = lstatSync(name, { throwIfNoEntry: false });
  if (stat === undefined) return undefined;
  if (stat.isSymbolicLink()) return `${name} is a symbolic link; remove it`;
  if (!stat.isSocket()) return `${name} is not a socket; remove it`;
  if (!isOurs(stat.uid))
    return `${name} belongs to another user; remove it, or use another ${thisProgram.variable("HOME")}`;
  return undefined;
}

/** How many sockets this process has opened: each is bound under a name of its own first. */
let opened = 0;

class SocketFile implements OwnSocket {
  readonly #name: string;
  readonly #folder: string;
  /** Of the socket that this process has put there. */
  #identity: string | undefined;

  constructor(name: string, folder: string) {
    this.#name = name;
    this.#folder = folder;
  }

  async open(listen: (name: string) => Promise<void>): Promise<void> {
    ensurePrivateFolder(this.#folder);
    this.#refuse();
    // Node removes the name that it listened on when it closes, whoever's socket is there by then: so that is a name of
    // our own.
    const aside = path.join(path.dirname(this.#name), `${process.pid}.${opened++}`);
    rmSync(aside, { force: true });
    await listen(aside);
    try {
      chmodSync(aside, 0o600);
      // A file may have been put there meanwhile, and the rename would replace it.
      this.#refuse();
      const identity = identityOf(aside);
      renameSync(aside, this.#name);
      this.#identity = identity;
    } catch (error) {
      rmSync(aside, { force: true });
      throw error;
    }
  }

  /** Throws when something other than a socket of this user has the name. A socket is replaced. */
  #refuse(): void {
    const refusal = refusalOfSocket(this.#name);
    if (refusal !== undefined) throw new RuntimeError("HOME_UNUSABLE", `Cannot listen: ${refusal}.`);
  }

  isThere(): boolean {
    return this.#identity !== undefined && identityOf(this.#name) === this.#identity;
  }

  remove(): void {
    if (this.isThere()) rmSync(this.#name, { force: true });
    if (!isSpare(this.#folder)) return;
    try {
      rmdirSync(this.#folder);
    } catch {
      // Somebody else has removed it, or a socket of another daemon of ours lies in it.
    }
  }
}
