import { chmodSync, lstatSync, mkdtempSync, renameSync, rmSync, statSync } from "node:fs";
import path from "node:path";
import { systemClock } from "../clock.ts";
import { RuntimeError, UsageError } from "../errors.ts";
import { withLock } from "./lock-file.ts";
import { type PathStep, stepsTo } from "./path-steps.ts";
import { isOurs, isTrusted, look, maxSocketBytes, toMode } from "./posix.ts";
import { identityOf, isAnswered } from "./socket-file.ts";
import { type OwnSocket, system } from "./system.ts";

/**
 * A socket to listen on at a path that a person has typed, in a folder that is not ours to change; on Windows a pipe.
 * Throws a UsageError for a name that is no pipe's.
 */
export function typedSocket(file: string, platform = system.platform): OwnSocket {
  if (platform !== "win32") return new TypedSocket(file);
  if (!/^\\\\[.?]\\pipe\\./i.test(file))
    throw new UsageError(
      `${file} is not the name of a pipe; on Windows a socket is named like \\\\.\\pipe\\my-server.`,
    );
  return system.ownSocket(file);
}

/**
 * A socket file where a person wants it. Only its owner can use the file, and only its owner can put another one there:
 * in a folder that others may write, somebody else's socket could take the path first and receive the tokens of clients.
 */
class TypedSocket implements OwnSocket {
  readonly #file: string;
  readonly #folder: string;
  /** Of the socket that this process has put there. */
  #identity: string | undefined;

  constructor(file: string) {
    this.#file = file;
    this.#folder = path.dirname(file);
  }

  /**
   * Listens in a private folder beside the path and moves the socket there, so that nobody else can reach it before it
   * has mode 0600. Of two servers that start at once the second one finds the socket of the first.
   */
  async open(listen: (name: string) => Promise<void>): Promise<void> {
    refuseTypedSocket(this.#file);
    const folder = this.#makePrivateFolder();
    try {
      const lock = path.join(this.#folder, `.${path.basename(this.#file)}.start-lock`);
      await withLock(lock, systemClock, () => this.#place(path.join(folder, nameAside), listen));
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }

  #makePrivateFolder(): string {
    try {
      return mkdtempSync(`${this.#folder}${path.sep}.`);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      throw new UsageError(
        `--socket ${this.#file} cannot be made: ${this.#folder} cannot be written (${code}); choose another folder.`,
      );
    }
  }

  async #place(aside: string, listen: (name: string) => Promise<void>): Promise<void> {
    if (await isAnswered(this.#file))
      throw new RuntimeError("PORT_IN_USE", `${this.#file} is in use; choose another path with --socket.`);
    await listen(aside);
    chmodSync(aside, 0o600);
    // A file may have been put there meanwhile, and the rename would replace it.
    refuseTypedSocket(this.#file);
    const identity = identityOf(aside);
    renameSync(aside, this.#file);
    this.#identity = identity;
  }

  isThere(): boolean {
    return this.#identity !== undefined && identityOf(this.#file) === this.#identity;
  }

  remove(): void {
    if (this.isThere()) rmSync(this.#file, { force: true });
  }
}

const nameAside = "s";
/** What `mkdtemp` adds to the path of the folder, and the name in it. */
const asideBytes = Buffer.byteLength(`/.123456/${nameAside}`);
/** The shortest limit of the systems, macOS's, is 104 bytes with the zero at the end. */
const maxAsideBytes = 103;

/** Throws a UsageError for a path at which no socket of this user alone can be. */
function refuseTypedSocket(file: string): void {
  const text = refusalOfPath(file) ?? refusalOfFolder(path.dirname(file)) ?? refusalOfFile(file);
  if (text !== undefined) throw new UsageError(`--socket ${file} ${text}.`);
}

function refusalOfPath(file: string): string | undefined {
  const isShort = system.fitsSocket(file) && Buffer.byteLength(path.dirname(file)) + asideBytes <= maxAsideBytes;
  return isShort ? undefined : `is too long: the system takes up to ${maxSocketBytes} bytes; choose a shorter path`;
}

function refusalOfFolder(folder: string): string | undefined {
  const stat = look(statSync, folder);
  if (stat?.isDirectory() !== true) return `cannot be made: there is no folder ${folder}; create it first`;
  if (!isTrusted(stat.uid, true))
    return `is in a folder of another user (uid ${stat.uid}); choose a folder of your own`;
  if ((stat.mode & 0o022) !== 0)
    return `is in a folder that others may write (mode ${toMode(stat)}), so they could put their own socket there; choose a folder of your own${isSticky(stat) ? "" : `, or chmod go-w ${folder}`}`;
  return stepsTo(folder)
    .map(refusalOfStep)
    .find((text) => text !== undefined);
}

/** Who may rename in a folder can put another one in the place of those below. In a sticky one only owners may. */
function refusalOfStep({ file, stat }: PathStep): string | undefined {
  const what = stat.isSymbolicLink() ? "is reached by the link" : "is below";
  if (!isTrusted(stat.uid, true))
    return `${what} ${file} of another user (uid ${stat.uid}), who could replace it; choose another folder`;
  if (stat.isSymbolicLink() || (stat.mode & 0o022) === 0 || isSticky(stat)) return undefined;
  return `is below ${file}, which others may write (mode ${toMode(stat)}), so they could replace the folders in it; choose another folder, or chmod go-w ${file}`;
}

const isSticky = ({ mode }: { readonly mode: number }) => (mode & 0o1000) !== 0;

function refusalOfFile(file: string): string | undefined {
  const there = look(lstatSync, file);
  if (there !== undefined && !there.isSocket()) return "exists and is not a socket; choose another path";
  if (there !== undefined && !isOurs(there.uid)) return "belongs to another user; choose another path";
  return undefined;
}
