/**
 * Each home's local user has a key of their own, in place of `local`. `meanwhile store migrate` gives the rows of `local`
 * to one home, and this remembers which. An old node runs a task with such a key as anonymous, so all old nodes are to be
 * stopped first; one that starts later is refused for the number of this schema.
 */
export const homes = `
create table SCHEMA.taken_rows (
  kind            text not null,
  id              text not null,
  caller          text not null,
  idempotency_key text,
  primary key (kind, id)
);
create index taken_rows_of_caller on SCHEMA.taken_rows (caller);
`;
