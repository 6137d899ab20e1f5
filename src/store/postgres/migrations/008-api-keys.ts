/**
 * API keys, and new caller keys of the users of an app: `token:["<issuer>","<client>","<subject>"]` becomes
 * `app:["<project>","<id>"]`, where the ID is the subject, or `<issuer>#sub:<subject>` where there is an issuer. Two
 * callers that differed by their client alone become one; an idempotency key that both used stays with the newer task.
 * An old node may keep running across it, but what it creates for an app's users afterwards they do not find.
 */
const text = String.raw`("(?:[^"\\]|\\.)*")`;
/** The three texts as they stand in the JSON, escapes included; null for any other key. */
const parts = (key: string) => String.raw`regexp_match(${key}, '^token:\[${text},${text},${text}\]$')`;
const movedKey = (project: string) => `
  'app:[' || to_json(${project}::text)::text || ',' ||
  case when part[1] = '""' then part[3] else left(part[1], -1) || '#sub:' || substr(part[3], 2) end || ']'`;

/** A session is stored under its project and its caller. */
const keyStart = "strpos(caller, ' token:[')";

export const apiKeys = `
create table SCHEMA.api_keys (
  id            text collate "C" primary key,
  project       text collate "C" not null,
  name          text collate "C" not null,
  hash          text collate "C" not null,
  earlier_hash  text collate "C",
  earlier_until bigint,
  scopes        text   not null,
  commands      text   not null,
  created_at    bigint not null,
  expires_at    bigint,
  used_at       bigint,
  unique (project, name)
);

with moved as (
  select number, project, idempotency_key, case when part is null then caller else ${movedKey("project")} end as caller
  from SCHEMA.tasks cross join lateral (select ${parts("caller")} as part) as found
  where idempotency_key is not null and (caller like 'token:%' or caller like 'app:%')),
ranked as (
  select number, row_number() over (partition by caller, project, idempotency_key order by number desc) as place from moved)
update SCHEMA.tasks as t set idempotency_key = null from ranked where t.number = ranked.number and ranked.place > 1;

update SCHEMA.tasks as t set caller = moved.caller
from (select number, ${movedKey("project")} as caller
      from SCHEMA.tasks cross join lateral (select ${parts("caller")} as part) as found
      where caller like 'token:%' and part is not null) as moved
where t.number = moved.number;

update SCHEMA.sessions as s set caller = moved.project || ' ' || moved.caller
from (select session_id, project, ${movedKey("project")} as caller
      from SCHEMA.sessions
      cross join lateral (select left(caller, ${keyStart} - 1) as project, substr(caller, ${keyStart} + 1) as key) as its
      cross join lateral (select ${parts("its.key")} as part) as found
      where ${keyStart} > 0 and part is not null) as moved
where s.session_id = moved.session_id;
`;
