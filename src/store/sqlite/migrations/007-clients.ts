/**
 * What is known of the client that asked for a task, where its run may need it. Of those that are there already nothing
 * is. An old worker may keep running across it: it runs no command that needs it.
 */
export const clients = `
alter table tasks add column client text;
`;
