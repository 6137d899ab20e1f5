/**
 * Journalled calls, beside tasks. Tasks are looked up and counted by an index that calls never enter.
 * An old worker may not keep running across it: it would list calls, count them, and run interrupted ones again.
 */
export const calls = `
alter table tasks add column is_call        integer not null default 0;
alter table tasks add column progress_token text;

drop index tasks_live;
create index tasks_live on tasks (caller, project, digest) where finished_at is null and is_call = 0;
`;
