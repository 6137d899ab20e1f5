/** API keys. An old node may keep running across it. */
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
`;
