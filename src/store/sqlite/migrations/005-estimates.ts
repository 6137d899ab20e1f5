/**
 * Whether an estimate has been proven by runs. Of tasks from before nobody knows.
 * An old worker may keep running across it: it only says sooner how long a run will take.
 */
export const estimates = `
alter table tasks add column is_proven integer not null default 0;
`;
