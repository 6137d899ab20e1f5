/** API keys. An old process may keep running across it. */
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
`;
