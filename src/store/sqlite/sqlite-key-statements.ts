import { keyColumns } from "../key-rows.ts";

/** The statements of API keys, each named for its verb. */
const columns = keyColumns.join(", ");
const isNamed = "project = :project and name = :name";

export const keyStatements = {
  addKey: `
    insert into api_keys (id, project, name, hash, scopes, commands, created_at, expires_at)
    values (:id, :project, :name, :hash, :scopes, :commands, :now, :now + :expiresInMs)
    on conflict (project, name) do nothing`,
  listKeys: `select ${columns} from api_keys where project = :project order by created_at, id`,
  rotateKey: `
    update api_keys set hash = :hash,
           earlier_hash = iif(:overlapMs > 0, hash, null), earlier_until = iif(:overlapMs > 0, :now + :overlapMs, null)
    where ${isNamed} returning ${columns}`,
  revokeKey: `delete from api_keys where ${isNamed}`,
  noteKeyUse: `
    update api_keys set used_at = :hour where project = :project and id = :id and (used_at is null or used_at < :hour)`,
} as const;
