import type Database from "better-sqlite3";
import { RuntimeError } from "../../errors.ts";
import { requireOwn } from "../../system/own-module.ts";

/**
 * Opens a database by better-sqlite3. The package is required when it is first needed: it is a native module, which no
 * bundle can hold, and a program that keeps its tasks in memory does without it.
 */
export function openDatabase(file: string, options: Database.Options): Database.Database {
  const Sqlite = loadSqlite();
  return new Sqlite(file, options);
}

function loadSqlite(): typeof Database {
  try {
    return requireOwn("better-sqlite3") as typeof Database;
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== "MODULE_NOT_FOUND") throw cause;
    throw new RuntimeError(
      "STORE_UNAVAILABLE",
      "The package better-sqlite3, which opens files of tasks, is not installed; install it beside your program: npm install better-sqlite3",
      {
        cause,
        forClients: "The task database cannot be opened; whoever runs the server finds the reason in its log.",
      },
    );
  }
}
