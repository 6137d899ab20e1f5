import { statSync } from "node:fs";
import { RuntimeError } from "../../errors.ts";
import { thisProgram } from "../../program/program.ts";

/** A file as it was when it was opened. */
export interface OpenFile {
  readonly path: string;
  readonly identity: string | undefined;
}

/** The files of an open database. SQLite keeps the two beside it for as long as anybody has it open. */
export function openFiles(database: string): readonly OpenFile[] {
  return [database, `${database}-wal`, `${database}-shm`].map((path) => ({ path, identity: identityOf(path) }));
}

/** SQLite goes on writing to a file that was deleted or replaced, where nobody will ever find what it acknowledged. */
export function refuseReplaced(files: readonly OpenFile[]): void {
  for (const { path, identity } of files) {
    const found = identityOf(path);
    if (found === identity) continue;
    const what = found === undefined ? "deleted" : "replaced";
    throw new RuntimeError(
      "STORE_GONE",
      `The task database's file ${path} was ${what} while it was open; put it back, or restart ${thisProgram.title}.`,
      {
        forClients: `The task database was ${what} while the server ran; whoever runs the server has to put it back, or restart the server.`,
      },
    );
  }
}

function identityOf(path: string): string | undefined {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat === undefined ? undefined : `${stat.dev}:${stat.ino}`;
}
