import { lstatSync, renameSync, rmSync, statSync } from "node:fs";
import { connect } from "node:net";
import path from "node:path";
import { RuntimeError, UsageError } from "../errors.ts";
import { isOurs, isTrusted, look, maxSocketBytes, toMode } from "./posix.ts";
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

/** How many sockets this process has opened: each is bound under a name of its own first. */
let opened = 0;

/**
 * A socket file where a person wants it. Only its owner can use the file, and only its owner can put another one there:
 * in a folder that others may write, somebody else's socket could take the path first and receive the tokens of clients.
 */
class TypedSocket implements OwnSocket {
  readonly #file: string;
  #inode: number | undefined;

  constructor(file: string) {
    this.#file = file;
  }

  async open(listen: (name: string) => Promise<void>): Promise<void> {
    // Node removes the path that it listened on when it closes, whatever is there by then: so that is a path of our own.
    const aside = path.join(path.dirname(this.#file), `${process.pid}.${opened++}.new`);
    refuseTypedSocket(this.#file, aside);
    if (await isAnswered(this.#file))
      throw new RuntimeError("PORT_IN_USE", `${this.#file} is in use; choose another path with --socket.`);
    rmSync(aside, { force: true });
    // The file is made in the first, synchronous part of `listen`, and never has a wider mode than 0600.
    const umask = process.umask(0o177);
    let listening: Promise<void>;
    try {
      listening = listen(aside);
    } finally {
      process.umask(umask);
    }
    await listening;
    this.#inode = lstatSync(aside).ino;
    renameSync(aside, this.#file);
  }

  isThere(): boolean {
    return this.#inode !== undefined && lstatSync(this.#file, { throwIfNoEntry: false })?.ino === this.#inode;
  }

  remove(): void {
    if (this.isThere()) rmSync(this.#file, { force: true });
  }
}

/** Throws a UsageError for a path at which no socket of this user alone can be. */
function refuseTypedSocket(file: string, aside: string): void {
  const folder = path.dirname(file);
  const stat = look(statSync, folder);
  const refusal = () => {
    if (!system.fitsSocket(file) || !system.fitsSocket(aside))
      return `is too long: the system takes up to ${maxSocketBytes} bytes; choose a shorter path`;
    if (stat?.isDirectory() !== true) return `cannot be made: there is no folder ${folder}; create it first`;
    if (!isTrusted(stat.uid, true))
      return `is in a folder of another user (uid ${stat.uid}); choose a folder of your own`;
    if ((stat.mode & 0o022) !== 0)
      return `is in a folder that others may write (mode ${toMode(stat)}), so they could put their own socket there; choose a folder of your own${(stat.mode & 0o1000) === 0 ? `, or chmod go-w ${folder}` : ""}`;
    const there = look(lstatSync, file);
    if (there !== undefined && !there.isSocket()) return "exists and is not a socket; choose another path";
    if (there !== undefined && !isOurs(there.uid)) return "belongs to another user; choose another path";
    return undefined;
  };
  const text = refusal();
  if (text !== undefined) throw new UsageError(`--socket ${file} ${text}.`);
}

/** False for a path where nothing is, and for a socket file that a killed process has left. */
function isAnswered(file: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(file);
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", ({ code }: NodeJS.ErrnoException) => resolve(code !== "ENOENT" && code !== "ECONNREFUSED"));
  });
}
