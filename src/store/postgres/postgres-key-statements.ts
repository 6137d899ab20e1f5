import { keyColumns } from "../key-rows.ts";

/** The statements of API keys, each named for its verb. Each may be carried out twice, where no answer came. */
const now = "SCHEMA.now_ms()";
const columns = keyColumns.join(", ");
const isNamed = "project = :project and name = :name";

export const keyStatements = {
  addKey: `
    insert into SCHEMA.api_keys as k (id, project, name, hash, scopes, commands, created_at, expires_at)
    values (:id, :project, :name, :hash, :scopes, :commands, ${now}, ${now} + :expiresInMs::bigint)
    on conflict (project, name) do update set name = excluded.name where k.id = excluded.id returning id`,
  /** One row without a key where the project has none: it says what time it is. */
  listKeys: `
    select ${now} as now, ${keyColumns.map((name) => `k.${name}`).join(", ")}
    from (select 1) as one left join SCHEMA.api_keys as k on k.project = :project order by k.created_at, k.id`,
  /** A second try leaves the earlier secret as the first one set it. */
  rotateKey: `
    update SCHEMA.api_keys set hash = :hash,
           earlier_hash = case when hash = :hash then earlier_hash when :overlapMs::bigint > 0 then hash end,
           earlier_until = case when hash = :hash then earlier_until when :overlapMs::bigint > 0 then ${now} + :overlapMs::bigint end
    where ${isNamed} returning ${columns}`,
  revokeKey: `delete from SCHEMA.api_keys where ${isNamed} returning id`,
  noteKeyUse: `
    update SCHEMA.api_keys set used_at = ${now} - ${now} % :hourMs::bigint
    where project = :project and id = :id and coalesce(used_at, 0) < ${now} - ${now} % :hourMs::bigint`,
} as const;
