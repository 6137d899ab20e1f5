import { RuntimeError } from "../errors.ts";
import { thisProgram } from "../program/program.ts";

/** Numbered changes of a schema, in their order; the last one's number is the schema's version. */
export interface Migrations {
  readonly statements: readonly string[];
}

/** The changes a database of this version still needs. Refuses one that a newer Meanwhile has changed. */
export function pendingMigrations(
  version: number,
  migrations: Migrations,
  place: string,
  kind: "file" | "database" = "file",
): readonly string[] {
  const known = migrations.statements.length;
  if (version > known) {
    throw new RuntimeError(
      "SCHEMA_NEWER",
      `${place} was written by a newer ${thisProgram.title} (schema ${version}, this one knows ${known}); update ${thisProgram.title}, or point ${thisProgram.variable("STORE")} at another ${kind}.`,
      {
        forClients: `The task database was written by a newer ${thisProgram.title} than this server's; whoever runs the server has to update it.`,
      },
    );
  }
  return migrations.statements.slice(version);
}
