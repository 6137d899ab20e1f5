/**
 * Named steps at which a test can end the process as `kill -9` would. Does nothing unless bin.ts arms it
 * from MEANWHILE_FAILPOINT=name:n, the n-th time that step is reached.
 */
export type FailpointName =
  | "after-insert"
  | "before-ack"
  | "after-claim"
  | "mid-run"
  | "before-settle"
  | "after-settle"
  | "before-notify"
  | "mid-migration"
  | "after-piece"
  | "mid-give-back"
  | "after-copied-page"
  | "before-comparison";

let armed: { name: string; left: number; die: () => void } | undefined;

/** Arms one failpoint; `die` ends the process without any clean-up. */
export function armFailpoint(setting: string | undefined, die: () => void): void {
  const [, name, count] = /^([\w-]+)(?::(\d+))?$/.exec(setting ?? "") ?? [];
  armed = name === undefined ? undefined : { name, left: Number(count ?? 1), die };
}

export function failpoint(name: FailpointName): void {
  if (armed === undefined || armed.name !== name) return;
  armed.left -= 1;
  if (armed.left === 0) armed.die();
}
