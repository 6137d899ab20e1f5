import { lstatSync } from "node:fs";
import { connect } from "node:net";

/** Device and inode of the file at a path, a link itself included; undefined where no file is. */
export function identityOf(file: string): string | undefined {
  const stat = lstatSync(file, { throwIfNoEntry: false });
  return stat && `${stat.dev}:${stat.ino}`;
}

/**
 * Resolves to true when a server accepts connections on this socket file. Resolves to false where no file is, and for
 * the file of a server that was killed.
 */
export function isAnswered(file: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(file);
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", ({ code }: NodeJS.ErrnoException) => resolve(code !== "ENOENT" && code !== "ECONNREFUSED"));
  });
}
