import type Database from "better-sqlite3";
import { failpoint } from "../../failpoint.ts";
import { pendingMigrations } from "../migrate.ts";
import { tasks } from "./migrations/001-tasks.ts";
import { calls } from "./migrations/002-calls.ts";
import { origins } from "./migrations/003-origins.ts";
import { fairShares } from "./migrations/004-fair-shares.ts";
import { estimates } from "./migrations/005-estimates.ts";
import { environments } from "./migrations/006-environments.ts";
import { clients } from "./migrations/007-clients.ts";
import { payloads } from "./migrations/008-payloads.ts";
import { sessions } from "./migrations/009-sessions.ts";
import { homes } from "./migrations/010-homes.ts";
import { apiKeys } from "./migrations/011-api-keys.ts";
import { transactOn } from "./transact.ts";

const migrations = {
  statements: [tasks, calls, origins, fairShares, estimates, environments, clients, payloads, sessions, homes, apiKeys],
};
/** Among the callers whose rows have their own key: all of them. */
export const everyCaller = "*";
/** What this program brings every file to. */
export const knownVersion = migrations.statements.length;
/** How long one waits for another that changes the schema: a file of some gigabytes takes that long. */
const migratingTimeoutMs = 120_000;

/** The schema's number in this file. Refuses what a newer program has written. */
export function checkVersion(db: Database.Database, file: string): number {
  const version = versionOf(db);
  pendingMigrations(version, migrations, file);
  return version;
}

/** Brings the schema up to date, as a whole or not at all; true when there was something to do to a file that had one. */
export function migrateFile(db: Database.Database, file: string): boolean {
  const before = versionOf(db);
  if (pendingMigrations(before, migrations, file).length === 0) return false;
  db.pragma(`busy_timeout = ${migratingTimeoutMs}`);
  // Inside a transaction that cannot be said any more.
  db.pragma("foreign_keys = OFF");
  transactOn(db).immediate(() => {
    const version = versionOf(db);
    for (const statement of pendingMigrations(version, migrations, file)) db.exec(statement);
    // No version before will ever write to a new file.
    if (version === 0) db.exec(`insert into rewritten_callers (caller) values ('${everyCaller}')`);
    failpoint("mid-migration");
    db.pragma(`user_version = ${knownVersion}`);
  });
  return before > 0;
}

/** The schema's number in this file, whoever has written it. */
export function versionOf(db: Database.Database): number {
  return db.pragma("user_version", { simple: true }) as number;
}
