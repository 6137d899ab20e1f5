/**
 * What each task's code depended on where it was asked for. Of those that are there already nobody knows, so whoever
 * comes runs them. An old worker may keep running across it: it runs tasks with the environment it has, as it always
 * did.
 */
export const environments = `
alter table tasks add column environment text;
`;
