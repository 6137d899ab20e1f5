/**
 * Each home's local user has a key of their own, in place of `local`. In the file of a home the rows are rewritten when
 * no other process has it open (see local-rows.ts); an old process that has it open goes on with `local` until then.
 * In any other file `meanwhile store migrate` gives the rows of `local` to one home, and `taken_rows` remembers which.
 */
export const homes = `
create table rewritten_callers (
  caller text primary key
) strict, without rowid;

create table taken_rows (
  kind            text not null,
  id              text not null,
  caller          text not null,
  idempotency_key text,
  primary key (kind, id)
) strict, without rowid;
create index taken_rows_of_caller on taken_rows (caller);
`;
