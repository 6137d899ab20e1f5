/**
 * Endless tasks are told apart, and the first of each caller's queue is found without reading the rest of it.
 * An old worker may keep running across it: it only shares less fairly.
 */
export const fairShares = `
alter table tasks add column is_endless integer not null default 0;

drop index tasks_queue;
create index tasks_queue on tasks (project, is_endless, caller, not_before, number) where status = 'queued';
`;
