/**
 * What a worker holds is as safe as the worker is alive, so that is looked at first: however many tasks are held, only
 * those of workers that have not been heard of are judged one by one. An old node may keep running across it: its
 * tasks are, since it never says here that it lives.
 */
export const workers = `
create table SCHEMA.workers (
  worker      text collate "C" primary key,
  lease_until bigint not null
);
`;
