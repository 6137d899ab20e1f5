/**
 * Where each task was asked for. Of those that are there already nobody knows, so they count as a client's without a
 * folder, which may do least. An old worker may not keep running across it: it would run a task as if it came from
 * nowhere.
 */
export const origins = `
alter table tasks add column door   text not null default 'mcp';
alter table tasks add column folder text;
`;
