/**
 * API keys, and new caller keys of the users of an app: `token:["<issuer>","<client>","<subject>"]` becomes
 * `app:["<project>","<id>"]`, where the ID is the subject, or `<issuer>#sub:<subject>` where there is an issuer. Two
 * callers that differed by their client alone become one; an idempotency key that both used stays with the newer task.
 * An old process may keep running across it, but what it creates for an app's users afterwards they do not find.
 */
const parts = (key: string) => `substr(${key}, 7)`;
const isEarlier = (key: string) => `
  case when ${key} glob 'token:[[]*' and json_valid(${parts(key)})
       then json_array_length(${parts(key)}) = 3 and not exists (select 1 from json_each(${parts(key)}) as part where part.type <> 'text')
       else 0 end`;
/** The texts stay as they stand in the JSON, escapes included. */
const movedKey = (key: string, project: string) => `
  'app:[' || json_quote(${project}) || ',' ||
  iif(${parts(key)} ->> '$[0]' = '', ${parts(key)} -> '$[2]',
      substr(${parts(key)} -> '$[0]', 1, length(${parts(key)} -> '$[0]') - 1) || '#sub:' || substr(${parts(key)} -> '$[2]', 2)) || ']'`;

/** A session is stored under its project and its caller. */
const keyStart = "instr(sessions.caller, ' token:[')";
const sessionKey = `substr(sessions.caller, ${keyStart} + 1)`;
const sessionProject = `substr(sessions.caller, 1, ${keyStart} - 1)`;

export const apiKeys = `
create table api_keys (
  id            text    primary key,
  project       text    not null,
  name          text    not null,
  hash          text    not null,
  earlier_hash  text,
  earlier_until integer,
  scopes        text    not null,
  commands      text    not null,
  created_at    integer not null,
  expires_at    integer,
  used_at       integer,
  unique (project, name)
) strict, without rowid;

update tasks set idempotency_key = null where number in (
  select number from (
    select number, row_number() over (partition by caller, project, idempotency_key order by number desc) as place
    from (select number, project, idempotency_key,
                 iif(${isEarlier("caller")}, ${movedKey("caller", "project")}, caller) as caller
          from tasks where idempotency_key is not null and (caller glob 'token:*' or caller glob 'app:*')))
  where place > 1);
update tasks set caller = ${movedKey("caller", "project")} where ${isEarlier("caller")};
update sessions set caller = ${sessionProject} || ' ' || ${movedKey(sessionKey, sessionProject)}
  where ${keyStart} > 0 and ${isEarlier(sessionKey)};
`;
